"""Type the row and the key of a change as the table's columns, for every record format."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeingest.decode.columns import SourceColumn
from lakeingest.decode.defaults import Default, default_value
from lakeingest.decode.encodings import Encodings
from lakeingest.decode.json.envelope import split_schema
from lakeingest.decode.placeholder import AMBIGUOUS_NULL, ambiguous, null_may_be_unchanged
from lakeingest.decode.row_layout import BARE, RowLayout
from lakeingest.decode.types.logical_type import Convert, Site
from lakeingest.decode.wire import RowReader
from lakeingest.engine.known_columns import Addition, Removal, Steps, made_once
from lakeingest.engine.known_columns import column as known_column
from lakeingest.frame_schemas import MOVED_UNNAMED

_SAME_IN_HEADERS = frozenset(
    ("boolean", "int8", "int16", "int32", "int64", "string", "io.debezium.data.Uuid")
)
"""Types that every header converter of Connect writes in the same way."""

_AS_WRITTEN = {"mode": "FAILFAST", "allowUnquotedControlChars": "true"}
"""``SimpleHeaderConverter`` escapes quotes and backslashes, nothing else."""


@dataclass(frozen=True)
class AddedColumn:
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
        added: Added columns, with the records that are older.
    """

    dropped: Mapping[str, Collection[bytes]] = field(default_factory=dict)
    added: Mapping[str, AddedColumn] = field(default_factory=dict)

    def __hash__(self) -> int:
        """Hash the names of the columns."""
        return hash((frozenset(self.dropped), frozenset(self.added)))


NONE_ABSENT = Absences()


@dataclass(frozen=True)
class RowSpec:
    """How to read the rows of a table.

    Attributes:
        columns: The table's columns.
        encodings: Wire settings of the connector, with the table's policies.
        reader: Reads the table's records.
        absences: Columns that some of the records lack.
    """

    columns: Sequence[SourceColumn]
    encodings: Encodings
    reader: RowReader
    absences: Absences = NONE_ABSENT


def with_row(
    changes: DataFrame, spec: RowSpec, *, masked: bool, sides: Sequence[str] = ("after",)
) -> DataFrame:
    """Add the row after the change.

    Args:
        changes: Has ``value`` (the record's octets); also ``op`` where columns are absent or come
            in cells, and ``moved_from`` where NULL may stand for an unchanged value
            (``placeholder.ambiguous``).
        spec: How to read the row; absent columns that were dropped need ``masked``.
        masked: Whether to look for unavailable values.
        sides: ``after``, ``before`` or both; the first side that is not NULL is the row.

    Returns:
        The same columns with ``row`` (struct of the columns; an unavailable value is NULL) and,
        when ``masked``, ``unavailable`` (array of column names, NULL where every value is there).
    """
    return with_parts(changes, row_part(spec, tuple(sides), masked=masked))


@dataclass(frozen=True, eq=False)
class Part:
    """A part of a change that is decoded: columns to add, in turn; and which are not needed then.

    Attributes:
        columns: The columns of each turn; they are over columns of the change and earlier turns.
        helpers: Names of those that are only on the way.
    """

    columns: tuple[Mapping[str, Column], ...]
    helpers: tuple[str, ...]


def with_parts(changes: DataFrame, *parts: Part) -> DataFrame:
    """Decode several parts of each change side by side: Spark analyses each step of a frame."""
    return _steps(parts).of(changes)


@made_once
def _steps(parts: tuple[Part, ...]) -> Steps:
    turns = zip_longest(*(part.columns for part in parts), fillvalue={})
    additions = (
        Addition({name: value for columns in turn for name, value in columns.items()})
        for turn in turns
    )
    helpers = (name for part in parts for name in part.helpers)
    return Steps(*additions, Removal(*helpers))


def row_part(spec: RowSpec, sides: tuple[str, ...], *, masked: bool, unnamed: bool = False) -> Part:
    """Return the part that ``with_row`` adds.

    Args:
        spec: See ``with_row``.
        sides: See ``with_row``.
        masked: See ``with_row``.
        unnamed: Whether the changes have ``MOVED_UNNAMED``.
    """
    return _row_part(spec, _conversions(spec.columns), sides, masked=masked, unnamed=unnamed)


def _conversions(columns: Iterable[SourceColumn]) -> tuple[Convert, ...]:
    """Return how values become those of the lake: types that look the same may differ in it."""
    return tuple(column.type.convert for column in columns)


@made_once
def _row_part(
    spec: RowSpec, _: tuple[Convert, ...], sides: tuple[str, ...], *, masked: bool, unnamed: bool
) -> Part:
    reader, encodings = spec.reader, spec.encodings
    may_be_ambiguous = masked and not reader.partial
    ambiguous_names = {
        column.name for column in spec.columns if may_be_ambiguous and ambiguous(column, encodings)
    }
    names = (*sides, "before") if ambiguous_names and "before" not in sides else sides
    read = {"_read": reader.sides(F.col("value"), spec.columns, names)}
    parts = {"_wire": F.coalesce(*(F.col("_read").getField(name) for name in sides))}
    if ambiguous_names:
        has_header = F.col("moved_from").isNotNull()
        moved = has_header | F.col(MOVED_UNNAMED) if unnamed else has_header
        parts["_may_be_unchanged"] = null_may_be_unchanged(
            F.col("op"), moved, F.col("_read").getField("before")
        )
    values, masks = [], []
    schema = reader.schema_of(known_column("value"))
    for column in spec.columns:
        site = Site(column.name, encodings.infinite, schema)
        value, absent = _value_and_absence(
            column, spec, site, masked=masked, is_ambiguous=column.name in ambiguous_names
        )
        values.append(value.alias(column.name))
        if absent is not None:
            masks.append(F.when(absent, F.lit(column.name)))
    result = {"row": F.when(F.col("_wire").isNotNull(), F.struct(*values))}
    if masked:
        absent_names = F.array_compact(F.array(*masks).cast("array<string>"))
        result["unavailable"] = F.when(F.size(absent_names) > 0, absent_names)
    return Part((read, parts, result), ("_read", *parts))


def _value_and_absence(
    column: SourceColumn, spec: RowSpec, site: Site, *, masked: bool, is_ambiguous: bool
) -> tuple[Column, Column | None]:
    """Return a column's value, and the condition that the change does not have it (None: never)."""
    reader = spec.reader
    field = reader.value(F.col("_wire").getField(column.name))
    absent = reader.omission(F.col("_wire"), column, spec.encodings) if masked else None
    early = spec.absences.added.get(column.name)
    if early is None:
        value = column.type.convert(field if absent is None else F.when(~absent, field), site)
    else:
        is_older = _lacks(column.name, early.tags, reader)
        if absent is not None:
            absent = absent & ~is_older
        present = field if absent is None else F.when(~absent, field)
        default = default_value(column, early.default, site.infinite)
        value = F.when(is_older, default).otherwise(column.type.convert(present, site))
    if is_ambiguous:
        is_unclear = F.col("_may_be_unchanged") & field.isNull()
        if spec.encodings.ambiguous == "fail":
            value = F.when(is_unclear, site.failed(AMBIGUOUS_NULL, _REMEDY)).otherwise(value)
        else:
            absent = is_unclear if absent is None else absent | is_unclear
    if masked and column.name in spec.absences.dropped:
        tags = spec.absences.dropped[column.name]
        is_dropped = _lacks(column.name, tags, reader) & (F.col("op") != "c")
        absent = is_dropped if absent is None else absent | is_dropped
    return value, absent


def _lacks(name: str, tags: Collection[bytes], reader: RowReader) -> Column:
    return F.coalesce(reader.lacks(F.col("value"), name, tags), F.lit(False))


_REMEDY = (
    "set REPLICA IDENTITY FULL, or lakeingest.ambiguous.nulls=keep for the older value, or =null"
)


def with_key(
    changes: DataFrame, key: Sequence[SourceColumn], name: str, reader: RowReader
) -> DataFrame:
    """Add struct ``name``: the key columns read from the record key in column ``key``."""
    return with_parts(changes, key_part(tuple(key), name, reader))


def key_part(key: tuple[SourceColumn, ...], name: str, reader: RowReader) -> Part:
    """Return the part that ``with_key`` adds."""
    return _key_part(key, _conversions(key), name, reader)


@made_once
def _key_part(
    key: tuple[SourceColumn, ...], _: tuple[Convert, ...], name: str, reader: RowReader
) -> Part:
    schema = reader.key_schema(F.col("key"), known_column("value"))
    read = {"_key": reader.key(F.col("key"), key)}
    struct = _struct("_key", key, reader, schema, refuses_null=True)
    return Part((read, {name: struct}), ("_key",))


def moved_from_part(key: tuple[SourceColumn, ...], name: str, reader: RowReader) -> Part:
    """Return struct ``name``: the key columns read from the header in column ``moved_from``.

    Debezium's headers go through Connect's header converter: JSON, whatever the format of the
    records. The struct is NULL unless ``header_identifies_key``.
    """
    return _moved_from_part(key, _conversions(key), name, reader)


@made_once
def _moved_from_part(
    key: tuple[SourceColumn, ...], _: tuple[Convert, ...], name: str, reader: RowReader
) -> Part:
    header_key = reader.header_columns(key)
    header, _schema = split_schema(F.col("moved_from").cast("binary"))
    if not header_identifies_key(key, reader):
        header = F.lit(None).cast("binary")
    read = F.from_json(header.cast("string"), BARE.row_type(header_key), _AS_WRITTEN)
    struct = _struct("_header", header_key, BARE)
    return Part(({"_header": read}, {name: struct}), ("_header",))


def null_in_key(site: Site) -> Column:
    """Return an expression that fails the job: NULL equals no NULL, so such a key finds no row."""
    return site.failed("NULL in a column of the key finds no row", _WITHOUT_NULL)


_WITHOUT_NULL = "declare columns as its key that are NOT NULL"


def header_identifies_key(key: Sequence[SourceColumn], reader: RowReader) -> bool:
    """Return whether a header's text identifies a key.

    Connect's default header converter writes a decimal as a bare number and a date as a date.
    ``JsonConverter`` writes the decimal as base64 and the date as a number of days. The text does
    not show which converter wrote it: ``1234`` is base64, too.
    """
    return not reader.partial and all(column.type.name in _SAME_IN_HEADERS for column in key)


def _struct(
    read: str,
    key: Sequence[SourceColumn],
    layout: RowReader | RowLayout,
    schema: Column | None = None,
    *,
    refuses_null: bool = False,
) -> Column:
    """Return a struct of the key columns from column ``read``, a key on the wire."""
    values = []
    for column in key:
        wire = layout.value(F.col(read).getField(column.name))
        site = Site(column.name, "refuse", schema)
        value = column.type.convert(wire, site)
        if refuses_null:
            value = F.coalesce(value, null_in_key(site))
        values.append(value.alias(column.name))
    return F.when(F.col(read).isNotNull(), F.struct(*values))
