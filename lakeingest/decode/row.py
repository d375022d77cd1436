"""The row and the key of a change, typed as the table's columns, whatever format they came in."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeingest.decode.cell import left_out, value_in
from lakeingest.decode.columns import Encodings, SourceColumn
from lakeingest.decode.defaults import Default, default_value
from lakeingest.decode.json_envelope import unwrapped
from lakeingest.decode.json_rows import wire
from lakeingest.decode.logical_type import Site
from lakeingest.decode.placeholder import UNTOLD, ambiguous, unavailable, untold
from lakeingest.decode.wire import RowReader

_TOLD_BY_HEADERS = frozenset(
    ("boolean", "int8", "int16", "int32", "int64", "string", "io.debezium.data.Uuid")
)
"""Types that every header converter of Connect writes in one way."""

_AS_WRITTEN = {"mode": "FAILFAST", "allowUnquotedControlChars": "true"}
"""``SimpleHeaderConverter`` escapes quotes and backslashes, nothing else."""


@dataclass(frozen=True)
class Early:
    """Records from before a column was added, where its default is known.

    Attributes:
        tags: ``schema_tag`` of the schemas that do not have it yet.
        default: What the column's rows from before have.
    """

    tags: frozenset[bytes]
    default: Default


@dataclass(frozen=True)
class Absences:
    """Columns that are not in all of a batch's records; a field that is not there is no NULL.

    Empty for all batches but those in which a column comes or goes, so that nobody else pays.

    Attributes:
        dropped: Columns that went, with the ``schema_tag`` of the schemas without them (none: each
            record must be looked into). An update without one leaves it as it is; an insert has no
            value for it.
        early: Columns that came.
    """

    dropped: Mapping[str, Collection[bytes]] = field(default_factory=dict)
    early: Mapping[str, Early] = field(default_factory=dict)


NONE_ABSENT = Absences()


def with_row(
    changes: DataFrame,
    columns: Sequence[SourceColumn],
    encodings: Encodings,
    reader: RowReader,
    *,
    masked: bool,
    sides: Sequence[str] = ("after",),
    absences: Absences = NONE_ABSENT,
) -> DataFrame:
    """Add the row after the change.

    Args:
        changes: Has ``value`` (the record's octets); ``op``, too, where columns are absent or come
            in cells, and ``moved_from`` where NULL may stand for an unchanged value
            (``placeholder.ambiguous``).
        columns: The table's columns.
        encodings: Wire settings of the connector.
        reader: Reads the table's records.
        masked: Whether to look for unavailable values.
        sides: Of ``after`` and ``before``; the first that is not null is the row.
        absences: Columns that not all of the records have; those that went need ``masked``.

    Returns:
        The same with ``row`` (struct of the columns; an unavailable value is null) and, when
        ``masked``, ``unavailable`` (array of column names, null where every value is there).
    """
    doubtful = masked and not reader.cells
    doubted = [column.name for column in columns if doubtful and ambiguous(column, encodings)]
    names = (*sides, "before") if doubted and "before" not in sides else sides
    parsed = changes.withColumn("_read", reader.sides(F.col("value"), columns, names))
    side = F.coalesce(*(F.col("_read").getField(name) for name in sides))
    parsed = parsed.withColumn("_wire", side)
    if doubted:
        sent = F.col("_read").getField("before")
        parsed = parsed.withColumn("_untold", untold(F.col("op"), F.col("moved_from"), sent))
    parsed = parsed.drop("_read")
    values, masks = [], []
    schema = reader.schema_of(F.col("value"))
    for column in columns:
        field, told = _told(F.col("_wire"), column, encodings, reader)
        site = Site(column.name, encodings.infinite, schema)
        absent = told if masked else None
        before = _before(column.name, absences, reader)
        if absent is not None and before is not None:
            absent = absent & ~before
        present = field if absent is None else F.when(~absent, field)
        value = column.type.convert(present, site)
        if before is not None:
            early = absences.early[column.name].default
            default = default_value(column, early, encodings.infinite)
            value = F.when(before, default).otherwise(value)
        if column.name in doubted:
            untold_here = F.col("_untold") & field.isNull()
            if encodings.ambiguous == "fail":
                value = F.when(untold_here, site.failed(UNTOLD, _TOLD)).otherwise(value)
            else:
                absent = untold_here if absent is None else absent | untold_here
        values.append(value.alias(column.name))
        if masked and column.name in absences.dropped:
            gone = _gone(column.name, absences, reader)
            absent = gone if absent is None else absent | gone
        if absent is not None:
            masks.append(F.when(absent, F.lit(column.name)))
    result = parsed.withColumn("row", F.when(F.col("_wire").isNotNull(), F.struct(*values)))
    if masked:
        found = F.array_compact(F.array(*masks)) if masks else F.array().cast("array<string>")
        result = result.withColumn("unavailable", F.when(F.size(found) > 0, found))
    return result.drop("_wire", "_untold")


def _told(
    wire: Column, column: SourceColumn, encodings: Encodings, reader: RowReader
) -> tuple[Column, Column | None]:
    """Return a column's value in a row, and the condition that the row leaves it out."""
    field = wire.getField(column.name)
    if not reader.cells:
        return field, unavailable(field, column, encodings)
    return value_in(field), wire.isNotNull() & left_out(field, F.col("op"))


_TOLD = (
    "set REPLICA IDENTITY FULL, or lakeingest.ambiguous.nulls=keep for the older value, or =null"
)


def _before(name: str, absences: Absences, reader: RowReader) -> Column | None:
    """Return a condition: the record is from before the column was added; null: none is."""
    early = absences.early.get(name)
    if early is None:
        return None
    return F.coalesce(reader.lacks(F.col("value"), name, early.tags), F.lit(False))


def _gone(name: str, absences: Absences, reader: RowReader) -> Column:
    lacks = reader.lacks(F.col("value"), name, absences.dropped[name])
    return F.coalesce(lacks, F.lit(False)) & (F.col("op") != "c")


def with_key(
    changes: DataFrame, key: Sequence[SourceColumn], name: str, reader: RowReader
) -> DataFrame:
    """Add struct ``name``: the key columns read from the record key in column ``key``."""
    read = reader.key(F.col("key"), key)
    schema = reader.key_schema(F.col("key"), F.col("value"))
    return _with_struct(changes, read, key, name, schema=schema, cells=reader.cells)


def with_moved_from(
    changes: DataFrame, key: Sequence[SourceColumn], name: str, reader: RowReader
) -> DataFrame:
    """Add struct ``name``: the key columns read from the header in column ``moved_from``.

    Debezium's headers go through Connect's header converter: JSON, whatever the records are. Only
    for keys that ``header_tells``; of others it is null.
    """
    shown = reader.header_columns(key)
    header, _ = unwrapped(F.col("moved_from").cast("binary"))
    if not header_tells(key, reader):
        header = F.lit(None).cast("binary")
    read = F.from_json(header.cast("string"), wire(shown), _AS_WRITTEN)
    return _with_struct(changes, read, shown, name)


def header_tells(key: Sequence[SourceColumn], reader: RowReader) -> bool:
    """Tell whether a header's text says what a key is.

    Connect's default converter of headers writes a decimal as a bare number and a date as a date,
    ``JsonConverter`` the one as base64 and the other as a number of days; which of them it was, no
    text tells: ``1234`` is base64, too.
    """
    return not reader.cells and all(column.type.name in _TOLD_BY_HEADERS for column in key)


def _with_struct(
    changes: DataFrame,
    read: Column,
    key: Sequence[SourceColumn],
    name: str,
    *,
    schema: Column | None = None,
    cells: bool = False,
) -> DataFrame:
    parsed = changes.withColumn("_key", read)
    values = []
    for column in key:
        field = F.col("_key").getField(column.name)
        wire = value_in(field) if cells else field
        site = Site(column.name, "refuse", schema)
        values.append(column.type.convert(wire, site).alias(column.name))
    return parsed.withColumn(name, F.when(F.col("_key").isNotNull(), F.struct(*values))).drop(
        "_key"
    )
