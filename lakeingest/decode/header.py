"""What is read of every record, whatever format it is in: routing, order, transactions."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from lakeingest.shape import EVENT_SOURCE, SOURCE, TRANSACTION

HEADER = StructType(
    [
        StructField("op", StringType()),
        StructField("source", SOURCE),
        StructField("transaction", TRANSACTION),
    ]
)
"""Of an envelope. Source: Debezium's ``Envelope`` and ``SourceInfo``."""

EVENT_HEADER = StructType(
    [
        StructField("op", StringType()),
        StructField("source", EVENT_SOURCE),
        StructField("transaction", TRANSACTION),
        StructField("ts_ms", LongType()),
    ]
)
"""The same where RFC-39's columns are wanted; a field that is not read costs its skipping only."""


def envelope_header(*, event: bool) -> StructType:
    """Return what is read of an envelope.

    Args:
        event: Whether RFC-39's columns are wanted.
    """
    return EVENT_HEADER if event else HEADER


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
