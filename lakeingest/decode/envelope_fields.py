"""What is read of every record, whatever format it is in: routing, order, transactions."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from lakeingest.frame_schemas import EVENT_SOURCE, SOURCE, TRANSACTION

FIELDS = StructType(
    [
        StructField("op", StringType()),
        StructField("source", SOURCE),
        StructField("transaction", TRANSACTION),
    ]
)
"""Of an envelope. Source: Debezium's ``Envelope`` and ``SourceInfo``."""

EVENT_FIELDS = StructType(
    [
        StructField("op", StringType()),
        StructField("source", EVENT_SOURCE),
        StructField("transaction", TRANSACTION),
        StructField("ts_ms", LongType()),
    ]
)
"""The same where RFC-39's columns are wanted; a field that is not read costs its skipping only."""


def envelope_fields(*, event: bool, source: StructType = SOURCE) -> StructType:
    """Return what is read of an envelope.

    Args:
        event: Whether RFC-39's columns are wanted; only connectors with ``SOURCE`` have them, or
            with some field more.
        source: What is read of the source block (``Family.source``).
    """
    fields = EVENT_FIELDS if event else FIELDS
    if source is SOURCE:
        return fields
    known = set(EVENT_SOURCE.fieldNames())
    more = [item for item in source if item.name not in known]
    return _with_source(fields, StructType([*EVENT_SOURCE, *more]) if event else source)


def _with_source(fields: StructType, source: StructType) -> StructType:
    changed = StructField("source", source)
    return StructType([changed if item.name == "source" else item for item in fields])


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
