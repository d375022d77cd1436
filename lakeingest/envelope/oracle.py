"""Oracle (LogMiner): positions from the commit's SCN and the change's place in its transaction.

SCNs are decimal text and compare as numbers. Transactions that commit at one SCN were open at the
same time, so they have no row in common (the second one to touch it waits for the first one's
commit, and commits later): their rows need no order between them, and ``redo_thread`` would give
none. Within a transaction ``txSeq`` counts (since Debezium 3.2); before it, the redo record and its
number do, which one transaction writes in order. The Kafka offset as the last resort is rejected: a
row that is sent again would look newer than what followed it in its own transaction.

The transaction's id (``txId``) says nothing of the commit, and END has no SCN: where an END stands
is told by the transaction's rows (``plan/window.py``), and that of one without rows by the END
before it. This keeps commit order, because LogMiner hands transactions over as they commit.

Topics are named without the database that END puts before its collections. Without ``commit_scn``
(XStream) rows have no position, which stops the run.
Sources: ``OracleSourceInfoStructMaker``, ``CommitScn``, ``TransactionMetadataIT``.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from lakeingest.envelope.family import Family, is_streamed
from lakeingest.position import component, position

_SOURCE = StructType(
    [
        StructField("ts_ms", LongType()),
        StructField("snapshot", StringType()),
        StructField("schema", StringType()),
        StructField("table", StringType()),
        StructField("scn", StringType()),
        StructField("commit_scn", StringType()),
        StructField("txSeq", LongType()),
        StructField("rs_id", StringType()),
        StructField("ssn", LongType()),
    ]
)

_REDO = 18
"""Digits of a redo record's address: log sequence, block, offset."""

_NOWHERE = "0" * _REDO


def _redo_record() -> Column:
    """Return the digits of ``rs_id`` (`` 0x000ad2.00001b3c.0154``); null where it is another."""
    bare = F.translate(F.trim(F.col("source.rs_id")), ".", "")
    digits = F.when(F.startswith(bare, F.lit("0x")), F.substring(bare, 3, _REDO + 1)).otherwise(
        bare
    )
    read = F.hex(F.unhex(digits))
    return F.when(F.octet_length(read) == _REDO, read)


def _position(epoch: Column) -> Column:
    counted = F.col("source.txSeq").isNotNull()
    # Rows of a snapshot, initial or incremental, are in no transaction.
    alone = F.coalesce(F.col("source.snapshot"), F.lit("false")) != "false"
    scn = F.when(is_streamed(), F.col("source.commit_scn")).otherwise(
        F.coalesce(F.col("source.scn"), F.lit("0"))
    )
    record = F.when(counted | alone, F.lit(_NOWHERE)).otherwise(_redo_record())
    number = F.when(counted | alone, F.lit(0)).otherwise(F.coalesce(F.col("source.ssn"), F.lit(0)))
    return position(
        epoch,
        is_streamed(),
        component(scn),
        component(F.coalesce(F.col("source.txSeq"), F.lit(0))),
        record,
        component(number),
    )


ORACLE = Family(
    position=_position,
    collection=lambda: F.concat_ws(".", F.col("source.schema"), F.col("source.table")),
    transaction_key=lambda id_: id_,
    end_position=None,
    end_collection=lambda name: F.substring_index(name, ".", -2),
    source=_SOURCE,
)
