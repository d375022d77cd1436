"""Name the declaration of a column that a database's catalogue describes.

JSON without schemas does not show the types of the source, and its catalogue does. The result is
the DDL that a person would write for ``lakeingest.table.<table>.schema``, so that it can be read
and corrected. Rejected: Spark's own types of a JDBC table. They are the types of the database's
values, and not of what Debezium writes of them: Spark reads a time of day as a timestamp, and
cannot tell ``timestamp(3)``, which comes in milliseconds, from ``timestamp``. Source: Debezium's
connector documentation, "Data type mappings", under the connectors' default modes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from lakeingest.decode.encodings import Encodings
from lakeingest.decode.seen_modes import Kind
from lakeingest.decode.types import decimals
from lakeingest.decode.types.logical import DECIMAL

_ARGUMENTS = re.compile(r"\(([^)]*)\)")

_MILLISECONDS = 3
"""Digits of a second that Debezium still writes as milliseconds."""

_ADAPTIVE = frozenset({"adaptive", "adaptive_time_microseconds"})

_TEXT = "STRING"

_POSTGRESQL: Mapping[str, str] = MappingProxyType(
    {
        "boolean": "BOOLEAN",
        "smallint": "SMALLINT",
        "integer": "INT",
        "bigint": "BIGINT",
        "oid": "BIGINT",
        "real": "FLOAT",
        "double precision": "DOUBLE",
        "bytea": "BINARY",
        "date": "DATE",
        "timestamp with time zone": "TIMESTAMP",
        **dict.fromkeys(
            (
                *("text", "character varying", "character", "bpchar", "citext", "name", "enum"),
                *("json", "jsonb", "xml", "uuid", "inet", "cidr", "macaddr", "macaddr8", "ltree"),
                *("int4range", "int8range", "numrange", "tsrange", "tstzrange", "daterange"),
            ),
            _TEXT,
        ),
    }
)
"""By ``format_type`` without its arguments."""

_MYSQL: Mapping[str, str] = MappingProxyType(
    {
        "tinyint": "SMALLINT",
        "smallint": "SMALLINT",
        "smallint unsigned": "INT",
        "mediumint": "INT",
        "mediumint unsigned": "INT",
        "int": "INT",
        "int unsigned": "BIGINT",
        "bigint": "BIGINT",
        "float": "FLOAT",
        "double": "DOUBLE",
        "year": "INT",
        "date": "DATE",
        "timestamp": "TIMESTAMP",
        **dict.fromkeys(
            ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), "BINARY"
        ),
        **dict.fromkeys(
            (
                *("char", "varchar", "tinytext", "text", "mediumtext", "longtext"),
                *("json", "uuid", "inet4", "inet6"),
            ),
            _TEXT,
        ),
    }
)
"""By ``COLUMN_TYPE`` without its arguments; unsigned types that are not here are as signed ones."""


def kind_of(declared: str) -> Kind | None:
    """Return the kind of a declared column whose way of writing depends on a mode; else None."""
    if declared.startswith("DECIMAL") and decimals.UNSIGNED not in declared:
        return Kind.DECIMAL
    return {"BINARY": Kind.BINARY, "TIMESTAMP_NTZ": Kind.TIME}.get(declared)


def declaration(family: str, type_: str, encodings: Encodings, seen: str | None) -> str | None:
    """Return the declaration of a column: a Spark type, and a comment where it needs one.

    Args:
        family: ``postgresql`` or ``mysql``.
        type_: The type as the catalogue writes it: ``numeric(10,2)``, ``int(10) unsigned``.
        encodings: The connector's modes.
        seen: Connect name of the type that the column's values suggest; None: there are none.

    Returns:
        None where lakeingest does not know how the records write the type.
    """
    element = type_.removesuffix("[]")
    if element != type_:
        of_element = declaration(family, element, encodings, None)
        # An element has no comment of its own.
        plain = of_element is not None and "COMMENT" not in of_element
        return f"ARRAY<{of_element}>" if plain else None
    match = _ARGUMENTS.search(type_)
    arguments = [item.strip() for item in match[1].split(",")] if match else []
    name = " ".join(_ARGUMENTS.sub(" ", type_, count=1).lower().split())
    # An extension's type outside the search path has its schema before it.
    name = name.rpartition(".")[2] if family == "postgresql" else name
    if family == "postgresql":
        return _of_postgresql(name, arguments, encodings)
    return _of_mysql(name, arguments, encodings, seen)


def _of_postgresql(name: str, arguments: list[str], encodings: Encodings) -> str | None:
    if name == "numeric":
        return _decimal(arguments, encodings)
    if name == "money":
        return _decimal(["19", "2"], encodings)
    if name in ("bit", "bit varying"):
        return _bits(arguments or ([] if name == "bit" else ["n"]), encodings)
    if name == "time with time zone":
        return None if encodings.time == "structured" else _TEXT
    if name in ("timestamp without time zone", "time without time zone"):
        digits = int(arguments[0]) if arguments else 6
        return _moment(name.split()[0], digits, encodings)
    return _POSTGRESQL.get(name)


def _of_mysql(
    name: str, arguments: list[str], encodings: Encodings, seen: str | None
) -> str | None:
    plain = name.removesuffix(" zerofill").removesuffix(" unsigned")
    if name.startswith(("enum", "set")):
        # Behind it is whatever its values hold.
        return _TEXT
    if plain == "decimal":
        return _decimal(arguments, encodings)
    if plain == "bit":
        return _bits(arguments, encodings)
    if plain in ("datetime", "time"):
        digits = int(arguments[0]) if arguments else 0
        # A time of day is in microseconds whatever its digits: adaptive_time_microseconds.
        moment = "timestamp" if plain == "datetime" else "time"
        return _moment(moment, digits if plain == "datetime" else 6, encodings)
    if plain == "bigint" and plain != name:
        # bigint.unsigned.handling.mode is long, or else precise.
        whole = "DECIMAL(20,0)"
        return whole if seen == "string" else f"{whole} COMMENT '{decimals.UNSIGNED}'"
    if plain == "tinyint" and arguments == ["1"] and seen == "boolean":
        return "BOOLEAN"
    return _MYSQL.get(name.removesuffix(" zerofill"), _MYSQL.get(plain))


def _decimal(arguments: list[str], encodings: Encodings) -> str | None:
    if not arguments:
        return _of_any_size(decimals.VARIABLE, encodings)
    precision, scale = int(arguments[0]), int(arguments[1]) if len(arguments) > 1 else 0
    digits = decimals.digits_of(precision, scale)
    semantic = f"{DECIMAL}({precision},{scale})"
    if digits <= decimals.DIGITS:
        in_octets = encodings.decimal == "precise" and encodings.decimal_format == "BASE64"
        comment = f" COMMENT '{semantic}'" if scale < 0 and in_octets else ""
        return f"DECIMAL({digits},{max(scale, 0)}){comment}"
    if encodings.decimal == "precise" and encodings.decimal_format == "NUMERIC":
        # Spark would round the number.
        return None
    return _of_any_size(semantic, encodings)


def _of_any_size(semantic: str, encodings: Encodings) -> str:
    if encodings.decimal == "double":
        return "DOUBLE"
    return f"{_TEXT} COMMENT '{semantic}'" if encodings.decimal == "precise" else _TEXT


def _bits(arguments: list[str], encodings: Encodings) -> str:
    if arguments in ([], ["1"]):
        return "BOOLEAN"
    # The mode is of other octets.
    return "BINARY" if encodings.binary == "bytes" else "BINARY COMMENT 'io.debezium.data.Bits'"


def _moment(kind: str, digits: int, encodings: Encodings) -> str | None:
    """Return the declaration of a time or timestamp without zone."""
    adaptive = encodings.time in _ADAPTIVE
    millis = digits <= _MILLISECONDS
    if kind == "time":
        in_millis = millis and encodings.time == "adaptive"
        semantic = "io.debezium.time.Time" if in_millis else "io.debezium.time.MicroTime"
        return f"{_TEXT} COMMENT '{semantic}'" if adaptive else None
    semantic = " COMMENT 'io.debezium.time.Timestamp'" if adaptive and millis else ""
    return f"TIMESTAMP_NTZ{semantic}"
