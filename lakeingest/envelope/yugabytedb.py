"""YugabyteDB, by logical replication and by gRPC: both send rows in cells (``decode/cells.py``).

**Logical replication** is Debezium's PostgreSQL connector over a YugabyteDB slot, with the same
envelope and ``source`` block. In a slot of LSN type ``SEQUENCE``, the default, each record has its
own LSN. In a slot of type ``HYBRID_TIME`` the LSN is the transaction's commit time, the same for
all its rows, so ``total_order`` orders the rows. That number is reliable here: after a restart the
connector makes the server send whole transactions again, from BEGIN. A ``SEQUENCE`` slot does not
need it. The two types cannot be confused: a hybrid time is microseconds since 1970 times 4096,
above 2^60 since 1978, and a sequence counts records.

**gRPC**: each tablet has its own log, and a row is at ``(commit_time, record_time)``: when its
transaction committed, and when the transaction wrote the row. YugabyteDB itself orders across
tablets like this, with the transaction's id in between; transactions with the same commit time
cannot have a row in common. So all events of a key are in order, also across a tablet split,
because a tablet's clock never goes back and its children continue it. Two writes to a row have two
times: a session sends its buffered writes before it writes to the same row again.

``source.lsn`` (``term:index:key:write_id:time``) looks like the place of a row, but is not. It is
the checkpoint from which the connector requested changes, the same for all records of one answer,
and another one after a restart. So the order of ``OpId`` says nothing about rows, and ``write_id``
says nothing about the order inside a transaction.

The gRPC connector does not mark snapshot rows: they are ``r`` at the snapshot's time. BEGIN and END
are per tablet and name no tables, so nothing shows when a transaction is complete.

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


YUGABYTEDB = replace(POSTGRESQL, position=_position, row_transaction=None, transaction_fields=())

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
    # Java's long is negative from 2041 on; its hexadecimal digits are those of the unsigned number.
    record_time = F.coalesce(F.col("source.record_time"), F.lit(0))
    return position(
        epoch, F.lit(True), component(F.col("source.commit_time")), component(record_time)
    )


YUGABYTEDB_GRPC = Family(
    position=_by_time,
    collection=POSTGRESQL.collection,
    source=_SOURCE,
)
