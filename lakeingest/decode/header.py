"""What is read of every record, whatever format it is in: routing, order, transactions."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from lakeingest.shape import SOURCE, TRANSACTION

HEADER = StructType(
    [
        StructField("op", StringType()),
        StructField("source", SOURCE),
        StructField("transaction", TRANSACTION),
    ]
)
"""Of an envelope. Source: Debezium's ``Envelope`` and ``SourceInfo``."""

_COUNT = StructType(
    [StructField("data_collection", StringType()), StructField("event_count", LongType())]
)
TRANSACTION_METADATA = StructType(
    [
        StructField("status", StringType()),
        StructField("id", StringType()),
        StructField("event_count", LongType()),
        StructField("data_collections", ArrayType(_COUNT)),
        StructField("ts_ms", LongType()),
    ]
)
"""Of BEGIN and END. Source: Debezium's ``TransactionStructMaker``."""
