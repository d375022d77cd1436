"""RFC-39's columns: Hudi's streamer writes them to describe the event that last decided a row.

Names, types and order are those of ``PostgresDebeziumSource`` and ``MysqlDebeziumSource`` in Hudi
1.2, so that a query over a table of Hudi's streamer also works over a table of lakeingest. Users
choose these columns (``lakeingest.metadata.columns=hudi``): readers see them, and
``lakeingest.metadata.prefix`` does not change them. lakeingest decides nothing by them; the
position alone gives the order. A field that Debezium leaves NULL stays NULL: an LSN of 0 in its
place would name a real place in the log.
"""

from __future__ import annotations

from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

EVENT = "event"
"""Struct column of a change that carries RFC-39's columns."""

OPERATION = "_change_operation_type"
GONE = "d"
"""Operation of a deleted row. A truncate gets it too: RFC-39 has no operation for a truncate."""

SEQUENCE = "_event_seq"
"""This column stands after the row's columns; all other RFC-39 columns stand before them."""

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

BY_SOURCE = {"PostgresDebeziumSource": POSTGRESQL, "MysqlDebeziumSource": BINLOG}
"""By Hudi's class of source (``Connector.streamer_source``)."""
