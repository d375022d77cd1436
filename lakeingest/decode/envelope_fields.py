"""The fields to read of every record, in any format: for routing, order, transactions."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from lakeingest.frame_schemas import EVENT_SOURCE, SOURCE, TRANSACTION


def envelope_fields(*, event: bool, source: StructType = SOURCE) -> StructType:
    """Return the fields to read of an envelope (Debezium's ``Envelope`` and ``SourceInfo``).

    Args:
        event: Whether to read RFC-39's columns, too; fields that only these need cost a skip.
        source: The fields of the source block to read (``Family.source``).
    """
    more: list[StructField] = []
    if event:
        names = EVENT_SOURCE.fieldNames()
        source = StructType([*EVENT_SOURCE, *(item for item in source if item.name not in names)])
        more = [StructField("ts_ms", LongType())]
    return StructType(
        [
            StructField("op", StringType()),
            StructField("source", source),
            StructField("transaction", TRANSACTION),
            *more,
        ]
    )


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
