"""The first and the last value of each source type that has such, as Debezium writes them.

As far as a lake holds them: what lies beyond is in ``test_infinite_times.py``. MySQL's
``0000-00-00`` is none of them, because no record has it: Debezium writes NULL, or 1970-01-01 where
the column is NOT NULL.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lakeingest.decode.types.examples import Example, Schema
from lakeingest.decode.types.logical import DECIMAL, JSON
from tests.decode.wire import unscaled

_TIME = "io.debezium.time."


def _ends(source: str, schema: Schema, *ends: tuple[Any, str]) -> Iterator[Example]:
    for wire, lake in ends:
        large = schema.get("name") == DECIMAL and len(lake.strip("-").replace(".", "")) > 38
        form = JSON.with_policy("string") if large else JSON
        yield Example(source, schema, wire, lake, form)


def _named(kind: str, name: str) -> Schema:
    return {"type": kind, "name": f"{_TIME}{name}"}


def _decimal(precision: int, scale: int) -> Schema:
    parameters = {"scale": str(scale), "connect.decimal.precision": str(precision)}
    return {"type": "bytes", "name": DECIMAL, "parameters": parameters}


def _number(digits: str, scale: int) -> tuple[str, str]:
    """Return a decimal of these digits on the wire and in the lake."""
    sign, size = ("-", digits[1:]) if digits.startswith("-") else ("", digits)
    shown = f"{size[:-scale]}.{size[-scale:]}" if scale else size
    return unscaled(int(digits)), f"{sign}{shown}"


_DAY, _SECOND = 86_400, 1_000_000
_FIRST, _LAST = -62_135_596_800, 253_402_300_799
"""Seconds of 0001-01-01 00:00:00 and 9999-12-31 23:59:59."""

POSTGRESQL = (
    *_ends("smallint", {"type": "int16"}, (-(2**15), "-32768"), (2**15 - 1, "32767")),
    *_ends("int", {"type": "int32"}, (-(2**31), "-2147483648"), (2**31 - 1, "2147483647")),
    *_ends("bigint", {"type": "int64"}, (-(2**63), str(-(2**63))), (2**63 - 1, str(2**63 - 1))),
    *_ends(
        "numeric(38,18)",
        _decimal(38, 18),
        _number("9" * 38, 18),
        _number("-" + "9" * 38, 18),
    ),
    *_ends(
        "date",
        _named("int32", "Date"),
        (-719_162, "0001-01-01"),
        (-141_428, "1582-10-14"),
        (2_932_896, "9999-12-31"),
    ),
    *_ends(
        "time",
        _named("int64", "MicroTime"),
        (0, "00:00:00.000000"),
        (_DAY * _SECOND, "24:00:00.000000"),
    ),
    *_ends("timetz", _named("string", "ZonedTime"), ("24:00:00Z", "24:00:00Z")),
    *_ends(
        "timestamp",
        _named("int64", "MicroTimestamp"),
        (_FIRST * _SECOND, "0001-01-01 00:00:00"),
        (_LAST * _SECOND + 999_999, "9999-12-31 23:59:59.999999"),
    ),
    *_ends(
        "timestamp(3)",
        _named("int64", "Timestamp"),
        (_FIRST * 1000, "0001-01-01 00:00:00"),
        (_LAST * 1000 + 999, "9999-12-31 23:59:59.999"),
    ),
    *_ends(
        "timestamptz",
        _named("string", "ZonedTimestamp"),
        ("0001-01-01T00:00:00.000000Z", "0001-01-01 00:00:00"),
        ("1899-12-31T23:59:59.999999Z", "1899-12-31 23:59:59.999999"),
        ("9999-12-31T23:59:59.999999Z", "9999-12-31 23:59:59.999999"),
    ),
    *_ends(
        "interval",
        _named("int64", "MicroDuration"),
        (-(2**63), str(-(2**63))),
        (2**63 - 1, str(2**63 - 1)),
    ),
)

MYSQL = (
    *_ends("tinyint", {"type": "int8"}, (-128, "-128"), (127, "127")),
    *_ends("int unsigned", {"type": "int64"}, (2**32 - 1, str(2**32 - 1))),
    *_ends("bigint unsigned", _decimal(20, 0), _number(str(2**64 - 1), 0)),
    *_ends(
        "decimal(65,30)",
        _decimal(65, 30),
        _number("9" * 65, 30),
        _number("-" + "9" * 65, 30),
    ),
    *_ends("date", _named("int32", "Date"), (-354_285, "1000-01-01"), (2_932_896, "9999-12-31")),
    *_ends(
        "time",
        _named("int64", "MicroTime"),
        (-3_020_399 * _SECOND, "-838:59:59.000000"),
        (3_020_399 * _SECOND, "838:59:59.000000"),
    ),
    *_ends(
        "datetime",
        _named("int64", "Timestamp"),
        (-30_610_224_000_000, "1000-01-01 00:00:00"),
        (_LAST * 1000, "9999-12-31 23:59:59"),
    ),
    *_ends(
        "datetime(6)",
        _named("int64", "MicroTimestamp"),
        (-30_610_224_000 * _SECOND, "1000-01-01 00:00:00"),
        (_LAST * _SECOND + 999_999, "9999-12-31 23:59:59.999999"),
    ),
    *_ends(
        "timestamp",
        _named("string", "ZonedTimestamp"),
        ("1970-01-01T00:00:01Z", "1970-01-01 00:00:01"),
        ("2038-01-19T03:14:07.999999Z", "2038-01-19 03:14:07.999999"),
    ),
    *_ends("year", _named("int32", "Year"), (0, "0"), (1901, "1901"), (2155, "2155")),
)

SQL_SERVER = (
    *_ends("tinyint", {"type": "int16"}, (255, "255")),
    *_ends("money", _decimal(19, 4), _number("922337203685477" + "5807", 4)),
    *_ends("date", _named("int32", "Date"), (-719_162, "0001-01-01"), (2_932_896, "9999-12-31")),
    *_ends(
        "datetime",
        _named("int64", "Timestamp"),
        (-6_847_804_800_000, "1753-01-01 00:00:00"),
        (_LAST * 1000 + 997, "9999-12-31 23:59:59.997"),
    ),
    *_ends(
        "datetime2(7): what 64 bits of nanoseconds hold",
        _named("int64", "NanoTimestamp"),
        (-(2**63) + 1, "1677-09-21 00:12:43.145224"),
        (2**63 - 2, "2262-04-11 23:47:16.854775"),
    ),
    *_ends(
        "time(7)",
        _named("int64", "NanoTime"),
        (0, "00:00:00.000000"),
        (_DAY * 10**9 - 100, "23:59:59.999999900"),
    ),
    *_ends(
        "datetimeoffset",
        _named("string", "ZonedTimestamp"),
        ("0001-01-01T00:00:00Z", "0001-01-01 00:00:00"),
        ("0001-01-01T14:00:00+14:00", "0001-01-01 00:00:00"),
        ("9999-12-31T09:59:59.9999999-14:00", "9999-12-31 23:59:59.999999"),
    ),
)

ORACLE = (
    *_ends("NUMBER(38)", _decimal(38, 0), _number("-" + "9" * 38, 0)),
    *_ends(
        "DATE, as of the year 1",
        _named("int64", "Timestamp"),
        (_FIRST * 1000, "0001-01-01 00:00:00"),
        (_LAST * 1000, "9999-12-31 23:59:59"),
    ),
    *_ends(
        "INTERVAL DAY TO SECOND",
        _named("int64", "MicroDuration"),
        (-(10**9) * _DAY * _SECOND // 1000, str(-(10**9) * _DAY * _SECOND // 1000)),
    ),
)

STRUCTURED = (
    *_ends(
        "timestamptz, mode structured",
        {
            "type": "struct",
            "name": f"{_TIME}StructuredZonedTimestamp",
            "fields": [
                *({"field": name, "type": "int32"} for name in ("year", "month", "day")),
                *({"field": name, "type": "int32"} for name in ("hour", "minute", "second")),
                {"field": "nanos", "type": "int32"},
                {"field": "offsetSeconds", "type": "int32"},
                {"field": "specialValue", "type": "string"},
            ],
        },
        (
            {"year": 1, "month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0, "nanos": 0},
            "0001-01-01 00:00:00",
        ),
    ),
)

RANGES = (*POSTGRESQL, *MYSQL, *SQL_SERVER, *ORACLE, *STRUCTURED)
