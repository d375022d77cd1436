"""RFC-39's columns: what tables of Hudi's streamer tell of the event that last decided a row.

Names, types and order are those that ``PostgresDebeziumSource`` and ``MysqlDebeziumSource`` of Hudi
1.2 write, so that queries over a table of theirs go on over one of ours. They are columns that
users asked for (``lakeingest.metadata.columns=hudi``): readers see them, and
``lakeingest.metadata.prefix`` does not change them. Nothing here decides by them; order is the
position's. What Debezium left null stays null: an LSN of 0 in its place would be a place in the
log.
"""

from __future__ import annotations

from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

EVENT = "event"
"""Column of changes that carries them, as a struct."""

OPERATION = "_change_operation_type"
GONE = "d"
"""Operation of a row that is gone, also where a truncate swept it away: RFC-39 has no other."""

SEQUENCE = "_event_seq"
"""Stands behind the row's columns, all others before them."""

_FIRST = (
    StructField(OPERATION, StringType()),
    StructField("_upstream_event_processed_ts_ms", LongType()),
    StructField("db_shard_source_partition", StringType()),
)
_ORIGIN = StructField("_event_origin_ts_ms", LongType())

POSTGRESQL = StructType(
    [
        *_FIRST,
        StructField("db_schema_source_partition", StringType()),
        _ORIGIN,
        StructField("_event_tx_id", LongType()),
        StructField("_event_lsn", LongType()),
        StructField("_event_xmin", LongType()),
    ]
)
BINLOG = StructType(
    [
        *_FIRST,
        _ORIGIN,
        StructField("_event_bin_file", StringType()),
        StructField("_event_pos", LongType()),
        StructField("_event_row", IntegerType()),
        StructField(SEQUENCE, StringType()),
    ]
)

BY_CONNECTOR = {
    "postgresql": POSTGRESQL,
    "mysql": BINLOG,
    "mariadb": BINLOG,
    "yugabytedb": POSTGRESQL,
}
