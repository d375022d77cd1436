"""Type the row and the key of a change as the table's columns, for every record format."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeingest.decode.cells import left_out, value_in
from lakeingest.decode.columns import Encodings, SourceColumn
from lakeingest.decode.defaults import Default, default_value
from lakeingest.decode.json.envelope import unwrapped
from lakeingest.decode.json.rows import wire
from lakeingest.decode.placeholder import UNTOLD, ambiguous, unavailable, untold
from lakeingest.decode.types.logical_type import Site
from lakeingest.decode.wire import RowReader

_SAME_IN_HEADERS = frozenset(
    ("boolean", "int8", "int16", "int32", "int64", "string", "io.debezium.data.Uuid")
)
"""Types that every header converter of Connect writes in the same way."""

_AS_WRITTEN = {"mode": "FAILFAST", "allowUnquotedControlChars": "true"}
"""``SimpleHeaderConverter`` escapes quotes and backslashes, nothing else."""


@dataclass(frozen=True)
class Early:
    """Records older than an added column, where its default is known.

    Attributes:
        tags: ``schema_tag`` of the schemas that do not have the column yet.
        default: The column's value in older rows.
    """

    tags: frozenset[bytes]
    default: Default


@dataclass(frozen=True)
class Absences:
    """Columns that some of a batch's records lack; a field that is not there is no NULL.

    Empty unless a column is added or dropped in the batch, so that no other batch pays for it.

    Attributes:
        dropped: Dropped columns, with the ``schema_tag`` of the schemas without them (empty: look
            into each record). An update without such a column leaves it as it is; an insert has no
            value for it.
        early: Added columns.
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
        changes: Has ``value`` (the record's octets); also ``op`` where columns are absent or come
            in cells, and ``moved_from`` where NULL may stand for an unchanged value
            (``placeholder.ambiguous``).
        columns: The table's columns.
        encodings: Wire settings of the connector.
        reader: Reads the table's records.
        masked: Whether to look for unavailable values.
        sides: ``after``, ``before`` or both; the first side that is not NULL is the row.
        absences: Columns that some of the records lack; dropped columns need ``masked``.

    Returns:
        The same columns with ``row`` (struct of the columns; an unavailable value is NULL) and,
        when ``masked``, ``unavailable`` (array of column names, NULL where every value is there).
    """
    may_be_ambiguous = masked and not reader.cells
    ambiguous_names = [
        column.name for column in columns if may_be_ambiguous and ambiguous(column, encodings)
    ]
    names = (*sides, "before") if ambiguous_names and "before" not in sides else sides
    parsed = changes.withColumn("_read", reader.sides(F.col("value"), columns, names))
    side = F.coalesce(*(F.col("_read").getField(name) for name in sides))
    parsed = parsed.withColumn("_wire", side)
    if ambiguous_names:
        row_before = F.col("_read").getField("before")
        parsed = parsed.withColumn("_untold", untold(F.col("op"), F.col("moved_from"), row_before))
    parsed = parsed.drop("_read")
    values, masks = [], []
    schema = reader.schema_of(F.col("value"))
    for column in columns:
        field, is_omitted = _value_and_omission(F.col("_wire"), column, encodings, reader)
        site = Site(column.name, encodings.infinite, schema)
        absent = is_omitted if masked else None
        is_older = _is_older(column.name, absences, reader)
        if absent is not None and is_older is not None:
            absent = absent & ~is_older
        present = field if absent is None else F.when(~absent, field)
        value = column.type.convert(present, site)
        if is_older is not None:
            early = absences.early[column.name].default
            default = default_value(column, early, encodings.infinite)
            value = F.when(is_older, default).otherwise(value)
        if column.name in ambiguous_names:
            is_ambiguous = F.col("_untold") & field.isNull()
            if encodings.ambiguous == "fail":
                value = F.when(is_ambiguous, site.failed(UNTOLD, _REMEDY)).otherwise(value)
            else:
                absent = is_ambiguous if absent is None else absent | is_ambiguous
        values.append(value.alias(column.name))
        if masked and column.name in absences.dropped:
            is_dropped = _lacks_dropped(column.name, absences, reader)
            absent = is_dropped if absent is None else absent | is_dropped
        if absent is not None:
            masks.append(F.when(absent, F.lit(column.name)))
    result = parsed.withColumn("row", F.when(F.col("_wire").isNotNull(), F.struct(*values)))
    if masked:
        absent_names = (
            F.array_compact(F.array(*masks)) if masks else F.array().cast("array<string>")
        )
        result = result.withColumn("unavailable", F.when(F.size(absent_names) > 0, absent_names))
    return result.drop("_wire", "_untold")


def _value_and_omission(
    wire: Column, column: SourceColumn, encodings: Encodings, reader: RowReader
) -> tuple[Column, Column | None]:
    """Return a column's value in a row, and the condition that the row omits it (None: never)."""
    field = wire.getField(column.name)
    if not reader.cells:
        return field, unavailable(field, column, encodings)
    return value_in(field), wire.isNotNull() & left_out(field, F.col("op"))


_REMEDY = (
    "set REPLICA IDENTITY FULL, or lakeingest.ambiguous.nulls=keep for the older value, or =null"
)


def _is_older(name: str, absences: Absences, reader: RowReader) -> Column | None:
    """Return a condition: the record is older than the column; None: no record is."""
    early = absences.early.get(name)
    if early is None:
        return None
    return F.coalesce(reader.lacks(F.col("value"), name, early.tags), F.lit(False))


def _lacks_dropped(name: str, absences: Absences, reader: RowReader) -> Column:
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

    Debezium's headers go through Connect's header converter: JSON, whatever the format of the
    records. Only keys for which ``header_tells`` can be read; for others the struct is NULL.
    """
    header_key = reader.header_columns(key)
    header, _ = unwrapped(F.col("moved_from").cast("binary"))
    if not header_tells(key, reader):
        header = F.lit(None).cast("binary")
    read = F.from_json(header.cast("string"), wire(header_key), _AS_WRITTEN)
    return _with_struct(changes, read, header_key, name)


def header_tells(key: Sequence[SourceColumn], reader: RowReader) -> bool:
    """Return whether a header's text identifies a key.

    Connect's default header converter writes a decimal as a bare number and a date as a date.
    ``JsonConverter`` writes the decimal as base64 and the date as a number of days. The text does
    not show which converter wrote it: ``1234`` is base64, too.
    """
    return not reader.cells and all(column.type.name in _SAME_IN_HEADERS for column in key)


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
