"""Dates, timestamps and times of day as numbers and text: every mode but ``structured``.

Times of day are ISO text with six digits, nine where the value has more: Spark 3.5 has no TIME
type, a long in three possible units is a trap, and the same time is the same text in every mode.
Timestamps without zone are ``timestamp_ntz``, computed by interval arithmetic so that no session
time zone can enter; nanoseconds are cut to microseconds, which is what Spark has.

A year beyond 9999 is a value like any other, as far as Spark reaches (years 290308 BC to 294247).
PostgreSQL's infinity is none: Debezium sends it as a number far away, or as a word, and a snapshot
sends the date ``-infinity`` as one 292 million years ahead (``LocalDate`` of a millisecond that
``java.sql.Date`` cannot show; its days do not fit 32 bits either). Written as they come, these
would be wrong dates. So they are told apart, and ``infinite`` says what becomes of them: ``fail``;
``null``; ``edge``, 1 January 0001 and the end of 9999, between which every engine reads dates and
comparisons stay right.

Source: Debezium's ``io.debezium.time`` and ``PostgresValueConverter``.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DateType,
    IntegerType,
    LongType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from lakeingest.decode.logical_type import Convert, LogicalType, Site, checked, plain

INFINITE_REMEDY = (
    "it is infinite: set lakeingest.infinite.times=edge for the first and last moment that every "
    "engine reads, or =null"
)

_EPOCH = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"
_EDGES: dict[type[DataType], tuple[str, str]] = {
    DateType: ("DATE'9999-12-31'", "DATE'0001-01-01'"),
    TimestampNTZType: (
        "TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'",
        "TIMESTAMP_NTZ'0001-01-01 00:00:00'",
    ),
    TimestampType: (
        "TIMESTAMP'9999-12-31 23:59:59.999999Z'",
        "TIMESTAMP'0001-01-01 00:00:00Z'",
    ),
}


def infinity(
    spark: DataType, name: str, positive: Column, negative: Column, site: Site
) -> tuple[Column, Column]:
    """Return whether a value is infinite, and what becomes of it.

    Args:
        spark: Type of the target column: date, timestamp or timestamp_ntz.
        name: The type in words.
        positive: Condition: it is infinity.
        negative: Condition: it is -infinity.
        site: Says by what policy.
    """
    if site.infinite == "edge":
        last, first = (F.expr(edge) for edge in _EDGES[type(spark)])
        return positive | negative, F.when(positive, last).otherwise(first)
    if site.infinite == "null":
        return positive | negative, F.lit(None).cast(spark)
    # A key that is another value, or none, would be another row's.
    remedy = INFINITE_REMEDY if site.infinite == "fail" else "an infinite time cannot be a key"
    return positive | negative, site.refused(name, remedy)


def _finite(
    name: str,
    spark: DataType,
    within: Callable[[Column], Column],
    convert: Callable[[Column], Column],
    ends: tuple[tuple[object, ...], tuple[object, ...]],
) -> Convert:
    """Convert what lies within bounds; beyond them there is infinity, or no value of the type.

    Args:
        name: The type in words.
        spark: Type of the target column.
        within: Condition: an ordinary value. The only one that most values meet.
        convert: Converts an ordinary value.
        ends: How the wire shows infinity and -infinity.
    """
    last, first = ends

    def conversion(value: Column, site: Site) -> Column:
        infinite, meant = infinity(spark, name, value.isin(*last), value.isin(*first), site)
        beyond = F.when(infinite, meant).when(value.isNotNull(), site.refused(name))
        return F.when(within(value), convert(value)).otherwise(beyond)

    return conversion


_FIRST_DAY = -2_440_588
"""24 November 4714 BC: no database has a date before PostgreSQL's first."""

_DAYS = _finite(
    "date",
    DateType(),
    lambda value: value >= _FIRST_DAY,
    F.date_from_unix_date,
    # Streamed; in a snapshot, where the connector's time zone decides between two.
    ((-2147472692, -622191234, -622191233), (-2147472691, -625821272, -625821271)),
)


def _moments(unit: str, divisor: int, last: int, first: int, least: int, most: int) -> Convert:
    def convert(value: Column) -> Column:
        # Decimal and not double: 19 digits of nanoseconds do not fit 53 bits.
        whole = value.cast("decimal(20,0)") / F.lit(divisor)
        count = value if divisor == 1 else F.floor(whole).cast("bigint")
        return F.expr(_EPOCH) + F.expr(f"INTERVAL '{unit}' SECOND") * count

    return _finite(
        "timestamp",
        TimestampNTZType(),
        lambda value: value.between(least, most),
        convert,
        ((last,), (first,)),
    )


_LAST_MICROS, _FIRST_MICROS = 9223372036825200000, -9223372036832400000
_LAST_MILLIS, _FIRST_MILLIS = _LAST_MICROS // 1000, _FIRST_MICROS // 1000
_LAST_NANOS, _FIRST_NANOS = 2**63 - 1, -(2**63)
_MILLIS = _moments("0.001", 1, _LAST_MILLIS, _FIRST_MILLIS, _FIRST_MILLIS + 1, _LAST_MILLIS - 1)
_MICROS = _moments("0.000001", 1, _LAST_MICROS, _FIRST_MICROS, _FIRST_MICROS + 1, _LAST_MICROS - 1)
_NANOS = _moments("0.000001", 1_000, _LAST_NANOS, _FIRST_NANOS, _FIRST_NANOS + 1, _LAST_NANOS - 1)


def _time_of_day(per_second: int) -> Convert:
    def convert(value: Column) -> Column:
        size = F.abs(value)
        second = F.floor(size / per_second).cast("bigint")
        rest = size % per_second
        micros = (rest * F.lit(1_000_000) / per_second).cast("bigint")
        # MySQL's TIME is a span and may be negative.
        sign = F.when(value < 0, F.lit("-")).otherwise(F.lit(""))
        clock = (sign, F.floor(second / 3600), F.floor(second / 60) % 60, second % 60)
        shown = F.format_string("%s%02d:%02d:%02d.%06d", *clock, micros)
        if per_second > 1_000_000:
            finer = F.format_string("%s%02d:%02d:%02d.%09d", *clock, rest)
            shown = F.when(rest % 1000 == 0, shown).otherwise(finer)
        # format_string makes the text "null" of a null.
        return F.when(value.isNotNull(), shown)

    return plain(convert)


def _iso_time(value: Column) -> Column:
    bare = F.translate(value, "Z", "")
    is_time = F.concat(F.lit("1970-01-01T"), bare).cast(TimestampNTZType()).isNotNull()
    fraction = F.substring(bare, 10, 9)
    width = F.greatest(F.length(fraction), F.lit(6))
    padded = F.rpad(fraction, 9, "0").substr(F.lit(1), width)
    return F.when(is_time, F.concat(F.substring(bare, 1, 8), F.lit("."), padded))


def _iso_infinite(
    name: str,
    spark: DataType,
    read: Callable[[Column], Column],
    last: Callable[[Column], Column],
    first: Callable[[Column], Column],
) -> Convert:
    ordinary = checked(name, read)

    def conversion(value: Column, site: Site) -> Column:
        infinite, meant = infinity(spark, name, last(value), first(value), site)
        return F.when(infinite, meant).otherwise(ordinary(value, site))

    return conversion


def _zoned(value: Column) -> Column:
    # Without a zone Spark would read the session's. Debezium writes Z: the pattern is for others.
    placed = value.endswith("Z") | value.rlike(r"[+-]\d\d(:?\d\d)?$")
    return F.when(placed, value.cast("timestamp"))


def _zoned_moment(value: Column, site: Site) -> Column:
    infinite, meant = infinity(
        TimestampType(), _ZONED, value == "infinity", value == "-infinity", site
    )
    # The words are looked for only in what is no timestamp.
    beyond = F.when(infinite, meant).when(value.isNotNull(), site.refused(_ZONED))
    return F.coalesce(_zoned(value), beyond)


_ZONED = "zoned timestamp"
_LONG, _TEXT, _NTZ = LongType(), StringType(), TimestampNTZType()

DATE = LogicalType(IntegerType(), DateType(), _DAYS, "date", "days")
MILLI_TIME = LogicalType(_LONG, _TEXT, _time_of_day(1_000), "time", "milliseconds")
MICRO_TIME = LogicalType(_LONG, _TEXT, _time_of_day(1_000_000), "time", "microseconds")
NANO_TIME = LogicalType(_LONG, _TEXT, _time_of_day(1_000_000_000), "time", "nanoseconds")
MILLI_TIMESTAMP = LogicalType(_LONG, _NTZ, _MILLIS, "timestamp", "milliseconds")
MICRO_TIMESTAMP = LogicalType(_LONG, _NTZ, _MICROS, "timestamp", "microseconds")
NANO_TIMESTAMP = LogicalType(_LONG, _NTZ, _NANOS, "timestamp", "nanoseconds")
ZONED_TIMESTAMP = LogicalType(_TEXT, TimestampType(), _zoned_moment, _ZONED, "ISO")
ISO_TIME = LogicalType(_TEXT, _TEXT, checked("time", _iso_time), "ISO time", "ISO")
ISO_DATE = LogicalType(
    _TEXT,
    DateType(),
    _iso_infinite(
        "date",
        DateType(),
        lambda value: F.translate(value, "Z", "").cast("date"),
        lambda value: (value == "-5877611-06-21Z") | value.startswith("+292278994-08-"),
        lambda value: (value == "-5877611-06-22Z") | value.startswith("+292269055-12-"),
    ),
    "date",
    "ISO",
)
ISO_TIMESTAMP = LogicalType(
    _TEXT,
    _NTZ,
    _iso_infinite(
        "timestamp",
        _NTZ,
        lambda value: F.translate(value, "Z", "").cast(_NTZ),
        lambda value: value == "+294247-01-10T04:00:25.2Z",
        lambda value: value == "-290308-12-21T19:59:27.6Z",
    ),
    "timestamp",
    "ISO",
)
