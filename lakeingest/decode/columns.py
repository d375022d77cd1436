"""Find the columns of a source table, from a declared DDL, a Connect schema or a sample of JSON."""

from __future__ import annotations

import base64
import hashlib
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
from lakeingest.decode.types import decimals, logical
from lakeingest.decode.types.logical import DECIMAL, JSON, PRIMITIVES, SEMANTIC, Form, LogicalType
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


@dataclass(frozen=True)
class Encodings:
    """Settings for decoding: how the connector writes what the wire does not show, and policies.

    The policies are here because a table may have its own, and they go the same way as the
    settings.

    Attributes:
        decimal: ``decimal.handling.mode``: precise, string or double.
        binary: ``binary.handling.mode``: bytes, base64, base64-url-safe or hex.
        placeholder: ``unavailable.value.placeholder``.
        time: ``time.precision.mode``, all of Debezium's.
        decimal_format: ``decimal.format`` of JsonConverter: BASE64 or NUMERIC.
        infinite: Policy for times that no lake can store; see ``logical_type.Site``.
        ambiguous: Meaning of a NULL that may stand for an unchanged value: null, keep or fail.
    """

    decimal: str = "precise"
    binary: str = "bytes"
    placeholder: str = "__debezium_unavailable_value"
    time: str = "adaptive"
    decimal_format: str = "BASE64"
    infinite: str = "fail"
    ambiguous: str = "null"

    def placeholder_bytes(self) -> bytes:
        """Return the placeholder's octets (``hex:`` prefix: raw octets)."""
        if self.placeholder.startswith("hex:"):
            return bytes.fromhex(self.placeholder.removeprefix("hex:"))
        return self.placeholder.encode()

    def json_marks(self) -> tuple[str, ...]:
        """Return the marks: a JSON record with an unavailable value contains one of these texts.

        The variants of the placeholder per declared type are in Debezium's
        ``PostgresValueConverter``; for the types that it sends as NULL, see the README's table of
        limits.
        """
        raw = self.placeholder_bytes()
        text = _json_text(raw.decode(errors="replace"))
        codes = ",".join(str(code) for code in self.codes())
        marks = (
            text,
            # An hstore is JSON inside JSON.
            _json_text(text),
            base64.b64encode(raw).decode(),
            f"[{codes}]",
            self.uuid_mark(),
        )
        return tuple(dict.fromkeys(marks))

    def avro_marks(self) -> tuple[bytes, ...]:
        """Return the marks: an Avro record with an unavailable value contains one of these octets.

        Avro has text and bytea as they are. It has the byte codes of an integer array as zigzag
        numbers: those of six bits take one octet, the rest two.
        """
        raw = self.placeholder_bytes()
        text = raw.decode(errors="replace")
        zigzag = [2 * code if code >= 0 else -2 * code - 1 for code in self.codes()]
        codes = [bytes([n] if n < 128 else [n & 0x7F | 0x80, n >> 7]) for n in zigzag]
        marks = (
            raw,
            # Debezium replaced octets that are not text when it made text of them.
            text.encode(),
            _json_text(text).encode(),
            b"".join(codes),
            # A nullable element follows the number of its branch: 1, written as 2.
            b"\x02".join(codes),
            self.uuid_mark().encode(),
        )
        return tuple(dict.fromkeys(marks))

    def codes(self) -> tuple[int, ...]:
        """Return the placeholder's octets as Java's signed bytes, as integer arrays have them."""
        return tuple(code - 256 if code > 127 else code for code in self.placeholder_bytes())

    def hstore_mark(self) -> str:
        """Return the JSON text of an unavailable hstore in mode ``json``."""
        text = _json_text(self.placeholder_bytes().decode(errors="replace"))
        return f'{{"{text}":"{text}"}}'

    def uuid_mark(self) -> str:
        """Return the name-based UUID (version 3, no namespace) of an unavailable ``uuid[]``."""
        digest = bytearray(hashlib.md5(self.placeholder_bytes(), usedforsecurity=False).digest())
        digest[6] = digest[6] & 0x0F | 0x30
        digest[8] = digest[8] & 0x3F | 0x80
        text = digest.hex()
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _json_text(text: str) -> str:
    """Return the text as Jackson writes it inside quotes (control characters in upper case)."""
    escaped = json.dumps(text, ensure_ascii=False)[1:-1]
    return re.sub(r"\\u00(..)", lambda match: match[0][:4] + match[1].upper(), escaped)


_LARGE = re.compile(re.escape(DECIMAL) + r"\(\s*(\d+)\s*,\s*(-?\d+)\s*\)")


def declared(schema: StructType, encodings: Encodings) -> tuple[SourceColumn, ...]:
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
        mode = "double" if numeric else encodings.decimal
        return logical.decimal(kind.precision, kind.scale, mode)
    if isinstance(kind, BinaryType):
        return logical.binary(encodings.binary)
    if type(kind) in _ADAPTIVE:
        by_mode = _BY_MODE.get(encodings.time, {})
        return SEMANTIC[by_mode.get(type(kind), _ADAPTIVE[type(kind)])]
    if isinstance(kind, ArrayType):
        return logical.array(_of_spark(kind.elementType, encodings, column))
    if isinstance(kind, MapType):
        value = _of_spark(kind.valueType, encodings, column)
        if kind.keyType.simpleString() == "string":
            return logical.mapping(value)
        return JSON.entries(_of_spark(kind.keyType, encodings, column), value)
    if isinstance(kind, StructType):
        fields = {item.name: _of_spark(item.dataType, encodings, column) for item in kind}
        return logical.struct(fields)
    if kind.simpleString() == "string":
        return logical.text()
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
        return logical.array(_of_connect(spec["items"], form))
    if kind == "map":
        keys, values = spec.get("keys") or {"type": "string"}, _of_connect(spec["values"], form)
        if keys["type"] == "string" and not keys.get("optional"):
            return logical.mapping(values)
        return form.entries(_of_connect(keys, form), values)
    if kind == "struct":
        return logical.struct({item["field"]: _of_connect(item, form) for item in spec["fields"]})
    if kind == "string":
        return logical.text(name or "string")
    return form.primitives[kind]


def of_json(kinds: Mapping[str, str]) -> tuple[SourceColumn, ...]:
    """Return the columns from names of Connect primitives, as inferred from bare JSON."""
    return tuple(SourceColumn(name, PRIMITIVES[kind]) for name, kind in kinds.items())


Versions = Mapping[bytes, Iterable[SourceColumn]]
"""Columns by the tag of their schema, in the order in which the schemas were made."""

_NONE: Versions = {}


def merged(versions: Versions, keys: Versions = _NONE) -> tuple[SourceColumn, ...]:
    """Return all columns of a batch's schemas, each with its widest type (``types/versions.py``).

    Args:
        versions: Columns of the rows.
        keys: Columns of the record keys, where those have their own schemas. A key column that no
            row has is not returned.
    """
    columns: dict[str, SourceColumn] = {}
    kinds: dict[str, dict[bytes, LogicalType]] = {}
    for tag, schema in versions.items():
        for column in schema:
            old = columns.get(column.name)
            if old is None or widens(old.type.spark, column.type.spark):
                columns[column.name] = column
            kinds.setdefault(column.name, {})[tag] = column.type
    for tag, schema in keys.items():
        for column in schema:
            kinds.setdefault(column.name, {})[tag] = column.type
    return tuple(
        replace(column, type=of_versions(column.type, kinds[column.name]))
        for column in columns.values()
    )
