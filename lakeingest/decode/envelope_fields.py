"""The fields to read of every record, in any format: for routing, order, transactions."""

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
"""Fields of an envelope. Source: Debezium's ``Envelope`` and ``SourceInfo``."""

EVENT_FIELDS = StructType(
    [
        StructField("op", StringType()),
        StructField("source", EVENT_SOURCE),
        StructField("transaction", TRANSACTION),
        StructField("ts_ms", LongType()),
    ]
)
"""The same with the fields for RFC-39's columns; a field that is not read costs only a skip."""


def envelope_fields(*, event: bool, source: StructType = SOURCE) -> StructType:
    """Return the fields to read of an envelope.

    Args:
        event: Whether to read RFC-39's columns; only connectors with ``SOURCE``, or with some
            additional field, have them.
        source: The fields of the source block to read (``Family.source``).
    """
    fields = EVENT_FIELDS if event else FIELDS
    if source is SOURCE:
        return fields
    event_names = set(EVENT_SOURCE.fieldNames())
    more = [item for item in source if item.name not in event_names]
    return _with_source(fields, StructType([*EVENT_SOURCE, *more]) if event else source)


def _with_source(fields: StructType, source: StructType) -> StructType:
    source_field = StructField("source", source)
    return StructType([source_field if item.name == "source" else item for item in fields])


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
"""Fields of BEGIN and END. Source: Debezium's ``TransactionStructMaker``."""
