"""Find the columns of a source table, from a declared DDL, a Connect schema or a sample of JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from lakeingest.decode.cells import without_cells
from lakeingest.decode.encodings import Encodings
from lakeingest.decode.types import composed, decimals, octets
from lakeingest.decode.types.logical import DECIMAL, JSON, PRIMITIVES, SEMANTIC, Form, text
from lakeingest.decode.types.logical_type import LogicalType
from lakeingest.decode.types.versions import of_versions
from lakeingest.errors import ConfigError
from lakeingest.widening import widens


@dataclass(frozen=True)
class SourceColumn:
    """One column, as the events show it.

    Attributes:
        name: Name in the events and in the lake.
        type: Its logical type.
        nullable: Whether the source lets it be NULL; None: not known.
        default: Its ``DEFAULT`` as the records' schema has it, in JSON; None where there is none,
            or it is not known.
    """

    name: str
    type: LogicalType
    nullable: bool | None = field(default=None, compare=False)
    default: str | None = field(default=None, compare=False)


_LARGE = re.compile(re.escape(DECIMAL) + r"\(\s*(\d+)\s*,\s*(-?\d+)\s*\)")


def declared_columns(schema: StructType, encodings: Encodings) -> tuple[SourceColumn, ...]:
    """Return the columns of a declared schema; a field's comment may name its semantic type.

    Raises:
        ConfigError: A type cannot be read from JSON, or differs from the type that the comment
            names.
    """
    columns = []
    for spec in schema:
        comment = str((spec.metadata or {}).get("comment", "")).strip()
        kind = _named(comment, spec.dataType) or _of_spark(spec.dataType, encodings, spec.name)
        if kind.spark != spec.dataType:
            message = (
                f"Column '{spec.name}' is declared {spec.dataType.simpleString()}, but its comment "
                f"names {comment}, which is {kind.spark.simpleString()}."
            )
            raise ConfigError(message)
        columns.append(SourceColumn(spec.name, kind))
    return tuple(columns)


def _named(comment: str, spark: DataType) -> LogicalType | None:
    """Return the type that a comment names; None for any other comment."""
    if comment == decimals.VARIABLE and isinstance(spark, DecimalType):
        return JSON.variable(spark)
    if comment == decimals.UNSIGNED and isinstance(spark, DecimalType):
        return decimals.unsigned()
    large = _LARGE.fullmatch(comment)
    if large:
        return JSON.with_policy("string").decimal(int(large[1]), int(large[2]))
    return SEMANTIC.get(comment)


_OF_SPARK: Mapping[type[DataType], str] = {
    BooleanType: "boolean",
    ByteType: "int8",
    ShortType: "int16",
    IntegerType: "int32",
    LongType: "int64",
    FloatType: "float32",
    DoubleType: "float64",
}


_BY_MODE: Mapping[str, Mapping[type[DataType], str]] = {
    "connect": {TimestampNTZType: "org.apache.kafka.connect.data.Timestamp"},
    "nanoseconds": {TimestampNTZType: "io.debezium.time.NanoTimestamp"},
    "isostring": {
        DateType: "io.debezium.time.IsoDate",
        TimestampNTZType: "io.debezium.time.IsoTimestamp",
    },
    "structured": {
        DateType: "io.debezium.time.StructuredDate",
        TimestampNTZType: "io.debezium.time.StructuredTimestamp",
        TimestampType: "io.debezium.time.StructuredZonedTimestamp",
    },
}
_ADAPTIVE: Mapping[type[DataType], str] = {
    DateType: "io.debezium.time.Date",
    # PostgreSQL's type. timestamp(3) and less, and MySQL's DATETIME, need a comment.
    TimestampNTZType: "io.debezium.time.MicroTimestamp",
    TimestampType: "io.debezium.time.ZonedTimestamp",
}
"""Semantic name of a declared type, in the modes without their own name for it."""


def _of_spark(kind: DataType, encodings: Encodings, column: str) -> LogicalType:
    if type(kind) in _OF_SPARK:
        return PRIMITIVES[_OF_SPARK[type(kind)]]
    if isinstance(kind, DecimalType):
        numeric = encodings.decimal == "precise" and encodings.decimal_format == "NUMERIC"
        mode = "numeric" if numeric else encodings.decimal
        return decimals.decimal(kind.precision, kind.scale, mode)
    if isinstance(kind, BinaryType):
        return octets.binary(encodings.binary)
    if type(kind) in _ADAPTIVE:
        by_mode = _BY_MODE.get(encodings.time, {})
        return SEMANTIC[by_mode.get(type(kind), _ADAPTIVE[type(kind)])]
    if isinstance(kind, ArrayType):
        return composed.array(_of_spark(kind.elementType, encodings, column))
    if isinstance(kind, MapType):
        value = _of_spark(kind.valueType, encodings, column)
        if kind.keyType.simpleString() == "string":
            return composed.mapping(value)
        return JSON.entries(_of_spark(kind.keyType, encodings, column), value)
    if isinstance(kind, StructType):
        fields = {item.name: _of_spark(item.dataType, encodings, column) for item in kind}
        return composed.struct(fields)
    if kind.simpleString() == "string":
        return text()
    message = (
        f"Column '{column}' is declared {kind.simpleString()}, a type that events cannot carry. "
        "Use a type that lakeingest types lists."
    )
    raise ConfigError(message)


def from_connect(fields: Iterable[Mapping[str, Any]], form: Form) -> tuple[SourceColumn, ...]:
    """Return the columns of the fields of a Connect struct, without their cells if they have any.

    Args:
        fields: Field schemas as JsonConverter writes them: ``field``, ``type``, ``name``,
            ``parameters``, ``items``, ``values``, ``fields``, ``optional``, ``default``.
        form: How octets and small integers look on the wire.
    """
    listed = list(fields)
    return tuple(_column(item, form) for item in without_cells(listed) or listed)


def _column(item: Mapping[str, Any], form: Form) -> SourceColumn:
    default = item.get("default")
    default_json = None if default is None else json.dumps(default)
    return SourceColumn(item["field"], _of_connect(item, form), item.get("optional"), default_json)


def _of_connect(spec: Mapping[str, Any], form: Form) -> LogicalType:
    name = spec.get("name") or ""
    kind = spec["type"]
    if name == DECIMAL:
        parameters = spec.get("parameters") or {}
        precision = int(parameters.get("connect.decimal.precision", decimals.DIGITS))
        return form.decimal(precision, int(parameters["scale"]))
    if name in form.semantic:
        return form.semantic[name]
    if kind == "array":
        return composed.array(_of_connect(spec["items"], form))
    if kind == "map":
        keys, values = spec.get("keys") or {"type": "string"}, _of_connect(spec["values"], form)
        if keys["type"] == "string" and not keys.get("optional"):
            return composed.mapping(values)
        return form.entries(_of_connect(keys, form), values)
    if kind == "struct":
        return composed.struct({item["field"]: _of_connect(item, form) for item in spec["fields"]})
    if kind == "string":
        return text(name or "string")
    return form.primitives[kind]


def columns_of_kinds(kinds: Mapping[str, str]) -> tuple[SourceColumn, ...]:
    """Return the columns from names of Connect primitives, as inferred from bare JSON."""
    return tuple(SourceColumn(name, PRIMITIVES[kind]) for name, kind in kinds.items())


Versions = Mapping[bytes, Iterable[SourceColumn]]
"""Columns by the tag of their schema, in the order in which the schemas were made."""

_NONE: Versions = {}


def merge_versions(versions: Versions, keys: Versions = _NONE) -> tuple[SourceColumn, ...]:
    """Return all columns of a batch's schemas, each with its widest type (``types/versions.py``).

    Where neither of two types holds the other, the newer one is the column's: the lake must take
    what the source sends from now on.

    Args:
        versions: Columns of the rows.
        keys: Columns of the record keys, where those have their own schemas. A key column that no
            row has is not returned.
    """
    columns: dict[str, SourceColumn] = {}
    kinds: dict[str, dict[bytes, LogicalType]] = {}
    for tag, schema in versions.items():
        for column in schema:
            new, old = column.type.spark, columns.get(column.name, column).type.spark
            if widens(old, new) or not widens(new, old):
                columns[column.name] = column
            kinds.setdefault(column.name, {})[tag] = column.type
    for tag, schema in keys.items():
        for column in schema:
            kinds.setdefault(column.name, {})[tag] = column.type
    return tuple(
        replace(column, type=of_versions(column.type, kinds[column.name]))
        for column in columns.values()
    )
