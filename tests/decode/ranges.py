"""The first and the last value of each source type that has such, as Debezium writes them.

As far as a lake holds them: what lies beyond is in ``test_infinite_times.py``. MySQL's
``0000-00-00`` is none of them, because no record has it: Debezium writes NULL, or 1970-01-01 where
the column is NOT NULL.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lakeingest.cli.type_examples import Example, Schema
from lakeingest.decode.types.logical import DECIMAL, JSON
from tests.decode.connect import DATE, MICRO_TIME, MICROS, MILLIS, ZONED, decimal, semantic, struct
from tests.decode.wire import unscaled


def _ends(source: str, schema: Schema, *ends: tuple[Any, str]) -> Iterator[Example]:
    for wire, lake in ends:
        large = schema.get("name") == DECIMAL and len(lake.strip("-").replace(".", "")) > 38
        yield Example(source, schema, wire, lake, JSON.with_policy("string") if large else JSON)


def _integers(source: str, kind: str, *numbers: int) -> Iterator[Example]:
    return _ends(source, {"type": kind}, *((number, str(number)) for number in numbers))


def _decimals(source: str, precision: int, scale: int, *digits: str) -> Iterator[Example]:
    return _ends(source, decimal(precision, scale), *(_number(each, scale) for each in digits))


def _number(digits: str, scale: int) -> tuple[str, str]:
    """Return a decimal of these digits on the wire and in the lake."""
    sign, size = ("-", digits[1:]) if digits.startswith("-") else ("", digits)
    shown = f"{size[:-scale]}.{size[-scale:]}" if scale else size
    return unscaled(int(digits)), f"{sign}{shown}"


_DAY, _SECOND = 86_400, 1_000_000
_FIRST, _LAST = -62_135_596_800, 253_402_300_799
"""Seconds of 0001-01-01 00:00:00 and 9999-12-31 23:59:59."""

_FIRST_DAY, _LAST_DAY = (-719_162, "0001-01-01"), (2_932_896, "9999-12-31")
_FIRST_MILLIS = (_FIRST * 1000, "0001-01-01 00:00:00")
_LAST_MICROS = (_LAST * _SECOND + 999_999, "9999-12-31 23:59:59.999999")
_DURATION = semantic("int64", "time.MicroDuration")
_LONGEST = 10**9 * _DAY * _SECOND // 1000
_OF_STRUCTURED = ("year", "month", "day", "hour", "minute", "second", "nanos", "offsetSeconds")

POSTGRESQL = (
    *_integers("smallint", "int16", -(2**15), 2**15 - 1),
    *_integers("int", "int32", -(2**31), 2**31 - 1),
    *_integers("bigint", "int64", -(2**63), 2**63 - 1),
    *_decimals("numeric(38,18)", 38, 18, "9" * 38, "-" + "9" * 38),
    *_ends("date", DATE, _FIRST_DAY, (-141_428, "1582-10-14"), _LAST_DAY),
    *_ends("time", MICRO_TIME, (0, "00:00:00.000000"), (_DAY * _SECOND, "24:00:00.000000")),
    *_ends("timetz", semantic("string", "time.ZonedTime"), ("24:00:00Z", "24:00:00Z")),
    *_ends("timestamp", MICROS, (_FIRST * _SECOND, "0001-01-01 00:00:00"), _LAST_MICROS),
    *_ends("timestamp(3)", MILLIS, _FIRST_MILLIS, (_LAST * 1000 + 999, "9999-12-31 23:59:59.999")),
    *_ends(
        "timestamptz",
        ZONED,
        ("0001-01-01T00:00:00.000000Z", "0001-01-01 00:00:00"),
        ("1899-12-31T23:59:59.999999Z", "1899-12-31 23:59:59.999999"),
        ("9999-12-31T23:59:59.999999Z", "9999-12-31 23:59:59.999999"),
    ),
    *_ends("interval", _DURATION, *((end, str(end)) for end in (-(2**63), 2**63 - 1))),
)

MYSQL = (
    *_integers("tinyint", "int8", -128, 127),
    *_integers("int unsigned", "int64", 2**32 - 1),
    *_decimals("bigint unsigned", 20, 0, str(2**64 - 1)),
    *_decimals("decimal(65,30)", 65, 30, "9" * 65, "-" + "9" * 65),
    *_ends("date", DATE, (-354_285, "1000-01-01"), _LAST_DAY),
    *_ends(
        "time",
        MICRO_TIME,
        (-3_020_399 * _SECOND, "-838:59:59.000000"),
        (3_020_399 * _SECOND, "838:59:59.000000"),
    ),
    *_ends(
        "datetime",
        MILLIS,
        (-30_610_224_000_000, "1000-01-01 00:00:00"),
        (_LAST * 1000, "9999-12-31 23:59:59"),
    ),
    *_ends("datetime(6)", MICROS, (-30_610_224_000 * _SECOND, "1000-01-01 00:00:00"), _LAST_MICROS),
    *_ends(
        "timestamp",
        ZONED,
        ("1970-01-01T00:00:01Z", "1970-01-01 00:00:01"),
        ("2038-01-19T03:14:07.999999Z", "2038-01-19 03:14:07.999999"),
    ),
    *_ends("year", semantic("int32", "time.Year"), (0, "0"), (1901, "1901"), (2155, "2155")),
)

SQL_SERVER = (
    *_integers("tinyint", "int16", 255),
    *_decimals("money", 19, 4, "922337203685477" + "5807"),
    *_ends("date", DATE, _FIRST_DAY, _LAST_DAY),
    *_ends(
        "datetime",
        MILLIS,
        (-6_847_804_800_000, "1753-01-01 00:00:00"),
        (_LAST * 1000 + 997, "9999-12-31 23:59:59.997"),
    ),
    *_ends(
        "datetime2(7): what 64 bits of nanoseconds hold",
        semantic("int64", "time.NanoTimestamp"),
        (-(2**63) + 1, "1677-09-21 00:12:43.145224"),
        (2**63 - 2, "2262-04-11 23:47:16.854775"),
    ),
    *_ends(
        "time(7)",
        semantic("int64", "time.NanoTime"),
        (0, "00:00:00.000000"),
        (_DAY * 10**9 - 100, "23:59:59.999999900"),
    ),
    *_ends(
        "datetimeoffset",
        ZONED,
        ("0001-01-01T00:00:00Z", "0001-01-01 00:00:00"),
        ("0001-01-01T14:00:00+14:00", "0001-01-01 00:00:00"),
        ("9999-12-31T09:59:59.9999999-14:00", "9999-12-31 23:59:59.999999"),
    ),
)

ORACLE = (
    *_decimals("NUMBER(38)", 38, 0, "-" + "9" * 38),
    *_ends("DATE, as of the year 1", MILLIS, _FIRST_MILLIS, (_LAST * 1000, "9999-12-31 23:59:59")),
    *_ends("INTERVAL DAY TO SECOND", _DURATION, (-_LONGEST, str(-_LONGEST))),
)

STRUCTURED = _ends(
    "timestamptz, mode structured",
    struct(
        "time.StructuredZonedTimestamp",
        **dict.fromkeys(_OF_STRUCTURED, "int32"),
        specialValue="string",
    ),
    (
        {**dict.fromkeys(_OF_STRUCTURED[:3], 1), **dict.fromkeys(_OF_STRUCTURED[3:7], 0)},
        "0001-01-01 00:00:00",
    ),
)

RANGES = (*POSTGRESQL, *MYSQL, *SQL_SERVER, *ORACLE, *STRUCTURED)
