"""The row and the key of a change, typed as the table's columns, whatever format they came in."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeingest.decode.columns import Encodings, SourceColumn
from lakeingest.decode.json_envelope import unwrapped
from lakeingest.decode.json_rows import JsonRows
from lakeingest.decode.logical_type import Site
from lakeingest.decode.placeholder import UNTOLD, ambiguous, unavailable, untold
from lakeingest.decode.wire import RowReader

_HEADERS = JsonRows()
"""Debezium's headers go through Connect's header converter: JSON, whatever the records are."""


def with_row(
    changes: DataFrame,
    columns: Sequence[SourceColumn],
    encodings: Encodings,
    reader: RowReader,
    *,
    masked: bool,
    sides: Sequence[str] = ("after",),
) -> DataFrame:
    """Add the row after the change.

    Args:
        changes: Has ``value`` (the record's octets); ``op`` and ``moved_from``, too, where NULL
            may stand for an unchanged value (``placeholder.ambiguous``).
        columns: The table's columns.
        encodings: Wire settings of the connector.
        reader: Reads the table's records.
        masked: Whether to look for unavailable values.
        sides: Of ``after`` and ``before``; the first that is not null is the row.

    Returns:
        The same with ``row`` (struct of the columns; an unavailable value is null) and, when
        ``masked``, ``unavailable`` (array of column names, null where every value is there).
    """
    doubted = [column.name for column in columns if masked and ambiguous(column, encodings)]
    names = (*sides, "before") if doubted and "before" not in sides else sides
    parsed = changes.withColumn("_read", reader.sides(F.col("value"), columns, names))
    side = F.coalesce(*(F.col("_read").getField(name) for name in sides))
    parsed = parsed.withColumn("_wire", side)
    if doubted:
        sent = F.col("_read").getField("before")
        parsed = parsed.withColumn("_untold", untold(F.col("op"), F.col("moved_from"), sent))
    parsed = parsed.drop("_read")
    values, masks = [], []
    for column in columns:
        field = F.col("_wire").getField(column.name)
        site = Site(column.name, encodings.infinite)
        absent = unavailable(field, column, encodings) if masked else None
        present = field if absent is None else F.when(~absent, field)
        value = column.type.convert(present, site)
        if column.name in doubted:
            untold_here = F.col("_untold") & field.isNull()
            if encodings.ambiguous == "fail":
                value = F.when(untold_here, site.failed(UNTOLD, _TOLD)).otherwise(value)
            else:
                absent = untold_here if absent is None else absent | untold_here
        values.append(value.alias(column.name))
        if absent is not None:
            masks.append(F.when(absent, F.lit(column.name)))
    result = parsed.withColumn("row", F.when(F.col("_wire").isNotNull(), F.struct(*values)))
    if masked:
        found = F.array_compact(F.array(*masks)) if masks else F.array().cast("array<string>")
        result = result.withColumn("unavailable", F.when(F.size(found) > 0, found))
    return result.drop("_wire", "_untold")


_TOLD = (
    "set REPLICA IDENTITY FULL, or lakeingest.ambiguous.nulls=keep for the older value, or =null"
)


def with_key(
    changes: DataFrame, key: Sequence[SourceColumn], name: str, reader: RowReader
) -> DataFrame:
    """Add struct ``name``: the key columns read from the record key in column ``key``."""
    return _with_struct(changes, reader.key(F.col("key"), key), key, name)


def with_moved_from(
    changes: DataFrame, key: Sequence[SourceColumn], name: str, reader: RowReader
) -> DataFrame:
    """Add struct ``name``: the key columns read from the header in column ``moved_from``."""
    shown = reader.header_columns(key)
    header, _ = unwrapped(F.col("moved_from").cast("binary"))
    return _with_struct(changes, _HEADERS.key(header, shown), shown, name)


def _with_struct(
    changes: DataFrame, read: Column, key: Sequence[SourceColumn], name: str
) -> DataFrame:
    parsed = changes.withColumn("_key", read)
    values = [
        column.type.convert(F.col("_key").getField(column.name), Site(column.name, "refuse")).alias(
            column.name
        )
        for column in key
    ]
    return parsed.withColumn(name, F.when(F.col("_key").isNotNull(), F.struct(*values))).drop(
        "_key"
    )
