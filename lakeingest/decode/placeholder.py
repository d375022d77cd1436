"""Recognise unavailable values while decoding; no later stage compares strings.

The form of an unchanged TOAST value depends on the declared type (Debezium's
``UnchangedToastedPlaceholder``, seen on the wire with 3.4.1 and 3.7.0): the placeholder text for
text types, its base64 for bytea, one-element arrays, its octets as numbers for integer arrays, a
name-based UUID for ``uuid[]``. All of these come from the setting's octets alone (``Marks``).

For some types Debezium sends NULL, because its converter has no placeholder for them: bytea in the
base64 modes, and arrays of anything but text, octets, UUIDs, int, bigint and date. Such a NULL in
an update may be the value, or may say that the value did not change (``ambiguous``). By default it
is the value, as in any other reader of these topics. Rejected: to keep the older value would ignore
every update that sets such a column to NULL, and to stop would stop at every row with such a NULL.
Who stores large values in such columns chooses ``keep``, or REPLICA IDENTITY FULL, which leaves no
doubt.

For bytea in the base64 modes, ``keep`` and ``fail`` apply only to columns that a DDL declares
BINARY. A schema, carried or registered, calls them text, and so they are text in the lake: the
setting would have to apply to every text column, whose NULL is a NULL. Declare such a column, or
let the connector write ``binary.handling.mode=bytes``. A schema names the types of arrays, so those
need no declaration.
Unconstrained ``numeric`` is not ambiguous: PostgreSQL stores it out of line only from some 4,000
digits on, so its NULL is practically always a NULL.
"""

from __future__ import annotations

from functools import lru_cache

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    IntegerType,
    LongType,
    MapType,
    StringType,
)

from lakeingest.decode.columns import SourceColumn
from lakeingest.decode.encodings import Encodings
from lakeingest.decode.types.logical_type import LogicalType

AMBIGUOUS_NULL = "an update with NULL may mean that the value did not change"


def unavailable(wire: Column, column: SourceColumn, encodings: Encodings) -> Column | None:
    """Return a condition: this wire value stands for "unchanged, not sent"; None if it cannot."""
    raw = encodings.placeholder_bytes()
    text, encoded, _ = encodings.text_marks()
    kind = column.type.wire
    if isinstance(kind, StringType):
        return F.coalesce(wire.isin(*encodings.text_marks()), F.lit(False))
    if isinstance(kind, BinaryType):
        return F.coalesce(wire == F.lit(raw), F.lit(False))
    if isinstance(kind, ArrayType) and isinstance(kind.elementType, BinaryType):
        return F.coalesce((F.size(wire) == 1) & (F.get(wire, F.lit(0)) == F.lit(raw)), F.lit(False))
    if isinstance(kind, ArrayType) and isinstance(kind.elementType, StringType):
        is_placeholder = F.get(wire, F.lit(0)).isin(text, encoded, encodings.uuid_mark())
        return F.coalesce((F.size(wire) == 1) & is_placeholder, F.lit(False))
    if isinstance(kind, ArrayType) and isinstance(kind.elementType, IntegerType | LongType):
        codes = F.array(*(F.lit(code) for code in encodings.codes())).cast(kind)
        return F.coalesce(wire == codes, F.lit(False))
    if isinstance(kind, MapType) and isinstance(kind.valueType, StringType):
        return F.coalesce(F.element_at(wire, F.lit(text)) == F.lit(text), F.lit(False))
    return None


def ambiguous(column: SourceColumn, encodings: Encodings) -> bool:
    """Return whether an unchanged value of this type comes as NULL, and the policy treats it."""
    if encodings.ambiguous == "null":
        return False
    kind = column.type
    if kind.name in ("binary/base64", "binary/base64-url-safe"):
        return True
    return isinstance(kind.spark, ArrayType) and not _has_placeholder(kind, kind.spark.elementType)


_ARRAYS_WITH_PLACEHOLDER = frozenset(
    f"array<{name}>"
    for name in (
        "string",
        "binary",
        "binary/bytes",
        "io.debezium.data.Json",
        "io.debezium.data.Uuid",
    )
)


def _has_placeholder(kind: LogicalType, element: DataType) -> bool:
    if isinstance(element, StringType | BinaryType):
        return kind.name in _ARRAYS_WITH_PLACEHOLDER
    if isinstance(element, DateType):
        return isinstance(kind.wire, ArrayType) and isinstance(kind.wire.elementType, IntegerType)
    return isinstance(element, IntegerType | LongType)


def null_may_be_unchanged(op: Column, moved: Column, before: Column) -> Column:
    """Return a condition: in this change, a NULL may stand for a value that did not change.

    Args:
        op: The change's kind.
        moved: Whether a primary-key change created the row.
        before: The row before the change. With REPLICA IDENTITY FULL it is there, and then every
            value is really the value.
    """
    return ((op == "u") | ((op == "c") & moved)) & before.isNull()


@lru_cache(maxsize=10_000)
def can_be_unavailable(column: SourceColumn, encodings: Encodings) -> bool:
    """Return whether a change can omit a value of this column and say so."""
    if encodings.ambiguous == "keep" and ambiguous(column, encodings):
        return True
    return unavailable(F.lit(None), column, encodings) is not None
