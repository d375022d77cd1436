"""The row and the key of a change, typed as the table's columns.

``from_json`` runs in FAILFAST mode: a value that does not fit its declared type fails the job
instead of becoming NULL. Its message holds the record, so the caller must replace it.
An absent field is NULL: a schemaless JSON row before an ``ADD COLUMN`` says no more.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from lakeingest.decode.columns import Encodings, SourceColumn
from lakeingest.decode.json_envelope import is_wrapped
from lakeingest.decode.placeholder import unavailable

_FAILFAST = {"mode": "FAILFAST"}


def _wire(columns: Sequence[SourceColumn]) -> StructType:
    return StructType([StructField(column.name, column.type.wire) for column in columns])


def _read(text: Column, schema: StructType, wrapped: bool) -> Column:
    """Parse JSON text as ``schema``; with ``wrapped`` also JsonConverter's schema envelope."""
    bare = F.from_json(text, schema, _FAILFAST)
    if not wrapped:
        return bare
    inside = StructType([StructField("payload", schema)])
    return F.when(is_wrapped(text), F.from_json(text, inside, _FAILFAST)["payload"]).otherwise(bare)


def with_row(
    changes: DataFrame,
    columns: Sequence[SourceColumn],
    encodings: Encodings,
    *,
    wrapped: bool,
    masked: bool,
    before: bool = False,
) -> DataFrame:
    """Add the row after the change.

    Args:
        changes: Has ``value`` (the envelope's JSON text).
        columns: The table's columns.
        encodings: Wire settings of the connector.
        wrapped: Whether some texts carry their schema.
        masked: Whether to look for unavailable values.
        before: Whether to fall back to ``before`` where ``after`` is null (keys of deletes).

    Returns:
        The same with ``row`` (struct of the columns; an unavailable value is null) and, when
        ``masked``, ``unavailable`` (array of column names, null where every value is there).
    """
    wire = _wire(columns)
    sides = [StructField("after", wire)]
    if before:
        sides.append(StructField("before", wire))
    parsed = changes.withColumn("_read", _read(F.col("value"), StructType(sides), wrapped))
    side = F.col("_read.after")
    if before:
        side = F.coalesce(side, F.col("_read.before"))
    parsed = parsed.withColumn("_wire", side).drop("_read")
    values, masks = [], []
    for column in columns:
        field = F.col("_wire").getField(column.name)
        absent = unavailable(field, column, encodings) if masked else None
        present = field if absent is None else F.when(~absent, field)
        values.append(column.type.convert(present).alias(column.name))
        if absent is not None:
            masks.append(F.when(absent, F.lit(column.name)))
    result = parsed.withColumn("row", F.when(F.col("_wire").isNotNull(), F.struct(*values)))
    if masked:
        found = F.array_compact(F.array(*masks)) if masks else F.array().cast("array<string>")
        result = result.withColumn("unavailable", F.when(F.size(found) > 0, found))
    return result.drop("_wire")


def with_key(
    changes: DataFrame,
    text: str,
    key: Sequence[SourceColumn],
    name: str,
    *,
    wrapped: bool,
) -> DataFrame:
    """Add struct ``name``: the key columns read from the JSON text in column ``text``."""
    parsed = changes.withColumn("_key", _read(F.col(text), _wire(key), wrapped))
    values = [
        column.type.convert(F.col("_key").getField(column.name)).alias(column.name)
        for column in key
    ]
    return parsed.withColumn(name, F.when(F.col("_key").isNotNull(), F.struct(*values))).drop(
        "_key"
    )
