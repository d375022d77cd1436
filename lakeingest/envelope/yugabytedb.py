"""YugabyteDB, by logical replication and by gRPC: both send rows in cells (``decode/cell.py``).

**Logical replication** is Debezium's PostgreSQL connector over a slot of YugabyteDB's, with the
same envelope and ``source`` block. In a slot of LSN type ``SEQUENCE``, the default, each record has
an LSN of its own. In one of type ``HYBRID_TIME`` it is the commit time of the transaction, the same
for all its rows, so ``total_order`` tells them apart. That number can be trusted here: after a
restart the connector has whole transactions sent again, from BEGIN. A sequence does without it. The
two types cannot be taken for one another: a hybrid time is microseconds since 1970 times 4096,
above 2^60 since 1978, and a sequence counts records.

**gRPC**: each tablet has a log of its own, and a row is at ``(commit_time, record_time)``: when its
transaction committed, and when the row was written in it. YugabyteDB's own order across tablets is
this one, with the transaction's id in between; transactions of one commit time cannot have a row in
common. So all events of a key are in order, across a tablet split, too, because a tablet's clock
never goes back and its children go on with it. Two writes to a row have two times: a session sends
what it has before it writes to the same row again.

``source.lsn`` (``term:index:key:write_id:time``) is not the place of a row, though it looks like
one: it is the checkpoint from which the connector asked for changes, the same for all records of
one answer, and another one after a restart. So ``OpId``'s order says nothing of rows, nor does
``write_id`` of the order inside a transaction.

The gRPC connector marks no row as a snapshot's: those are ``r`` at the snapshot's time. BEGIN and
END are per tablet and name no tables, so nothing tells when a transaction is whole.

Sources: ``PostgresStreamingChangeEventSource``, ``WalPositionLocator`` (``yugabyte/debezium``);
``YugabyteDBStreamingChangeEventSource``, ``OpId``, ``consistent/Message``
(``yugabyte/debezium-connector-yugabytedb``); ``cdcsdk_virtual_wal.cc``,
``cdcsdk_unique_record_id.cc``, ``cdcsdk_producer.cc``, ``pg_operation_buffer.cc``
(``yugabyte/yugabyte-db``).
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from lakeingest.envelope.family import Family
from lakeingest.envelope.postgresql import POSTGRESQL
from lakeingest.position import component, position

_HYBRID = 2**60
"""LSNs from here on are hybrid times."""


def _position(epoch: Column) -> Column:
    by_lsn = POSTGRESQL.position(epoch)
    order = component(F.coalesce(F.col("transaction.total_order"), F.lit(0)))
    return F.when(F.col("source.lsn") >= _HYBRID, F.concat(by_lsn, order)).otherwise(by_lsn)


YUGABYTEDB = replace(POSTGRESQL, position=_position, cells=True)

_SOURCE = StructType(
    [
        StructField("ts_ms", LongType()),
        StructField("snapshot", StringType()),
        StructField("schema", StringType()),
        StructField("table", StringType()),
        StructField("commit_time", LongType()),
        StructField("record_time", LongType()),
    ]
)


def _by_time(epoch: Column) -> Column:
    # Java's long is negative from 2041 on; in hexadecimal it is the unsigned number again.
    written = F.coalesce(F.col("source.record_time"), F.lit(0))
    return position(epoch, F.lit(True), component(F.col("source.commit_time")), component(written))


YUGABYTEDB_GRPC = Family(
    position=_by_time,
    collection=POSTGRESQL.collection,
    transaction_key=lambda id_: id_,
    end_position=None,
    source=_SOURCE,
    cells=True,
)
