"""Oracle (LogMiner): positions from the commit's SCN and the change's place in its transaction.

SCNs are decimal text and compare as numbers. Transactions that commit at one SCN were open at the
same time, so they have no row in common: the second transaction that touches a row waits for the
first one's commit, and commits later. So their rows need no order between them, and ``redo_thread``
would give none. Within a transaction ``txSeq`` counts the changes (since Debezium 3.2). Before 3.2
the redo record and its number give the order; one transaction writes them in order. Rejected: the
Kafka offset as the last resort. A row that is sent again would look newer than the rows behind it
in its own transaction.

The transaction's id (``txId``) says nothing about the commit, and END has no SCN. The rows of a
transaction give the position of its END (``plan/end_positions.py``); without rows, the END before
it does.
This keeps commit order, because LogMiner sends transactions as they commit.

Topic names lack the database, which END puts before its collections. Without ``commit_scn``
(XStream) rows have no position, which stops the run.
Sources: ``OracleSourceInfoStructMaker``, ``CommitScn``, ``TransactionMetadataIT``.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from lakeingest.envelope.family import Family, is_streamed, table_name
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
"""Number of digits of a redo record's address: log sequence, block, offset."""

_NO_RECORD = "0" * _REDO


def _redo_record() -> Column:
    """Return the digits of ``rs_id`` (`` 0x000ad2.00001b3c.0154``); NULL for another format."""
    bare = F.translate(F.trim(F.col("source.rs_id")), ".", "")
    digits = F.when(F.startswith(bare, F.lit("0x")), F.substring(bare, 3, _REDO + 1)).otherwise(
        bare
    )
    normalized = F.hex(F.unhex(digits))
    return F.when(F.octet_length(normalized) == _REDO, normalized)


def _position(epoch: Column) -> Column:
    has_sequence = F.col("source.txSeq").isNotNull()
    # Snapshot rows, initial or incremental, have no transaction.
    is_snapshot = F.coalesce(F.col("source.snapshot"), F.lit("false")) != "false"
    scn = F.when(is_streamed(), F.col("source.commit_scn")).otherwise(
        F.coalesce(F.col("source.scn"), F.lit("0"))
    )
    record = F.when(has_sequence | is_snapshot, F.lit(_NO_RECORD)).otherwise(_redo_record())
    number = F.when(has_sequence | is_snapshot, F.lit(0)).otherwise(
        F.coalesce(F.col("source.ssn"), F.lit(0))
    )
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
    collection=lambda: table_name("schema", "table"),
    end_collection=lambda name: F.substring_index(name, ".", -2),
    source=_SOURCE,
)
