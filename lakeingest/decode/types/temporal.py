"""Dates, timestamps and times of day as numbers and text: every mode but ``structured``.

Times of day are ISO text with six digits, or nine if the value has more. Spark 3.5 has no TIME
type, a long in three possible units is a trap, and this way the same time is the same text in every
mode. Timestamps without zone are ``timestamp_ntz``, computed by interval arithmetic so that no
session time zone can enter; nanoseconds are cut to microseconds, which is what Spark has.

A lake stores the years 1 to 9999. PostgreSQL has more: dates from 4714 BC to 5874897, moments to
294276, and infinity, which Debezium sends as a number far away, or as a word. A snapshot sends the
date ``-infinity`` as one 292 million years ahead (``LocalDate`` of a millisecond that
``java.sql.Date`` cannot show; its days do not fit 32 bits either). One policy applies to all of
them, ``infinite``: ``fail``; ``null``; ``edge``, the first and last moment of these years, so that
comparisons stay right. Rejected: to store other years because Spark can. Python, pandas, JDBC and
the text of Delta's statistics have four digits of a year, so only Spark could read a table with one
such row. A value that no source sends, such as a number below PostgreSQL's first day (Debezium's
own overflow of its last one), is not a value of the type under any policy.

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

from lakeingest.decode.types.logical_type import Convert, LogicalType, Site, checked

_BEYOND = "is infinite, or not in the years 1 to 9999 that every reader knows"
_REMEDY = "set lakeingest.infinite.times=edge for the first or last moment of these years, or =null"

_EPOCH = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"
EDGES: dict[type[DataType], tuple[str, str]] = {
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
"""Last and first moment of the years that every reader knows."""


def beyond(spark: DataType, name: str, late: Column, early: Column, site: Site) -> Column:
    """Return the result for a value that is not an ordinary one.

    Args:
        spark: Type of the target column: date, timestamp or timestamp_ntz.
        name: The type in words.
        late: Condition: the value is infinity, or after the year 9999.
        early: Condition: the value is -infinity, or before the year 1; ``late`` takes precedence.
            If neither holds, it is not a value of the type.
        site: Has the policy.
    """
    if site.infinite == "edge":
        last, first = (F.expr(edge) for edge in EDGES[type(spark)])
        return F.when(late, last).when(early, first).otherwise(site.refused(name))
    if site.infinite == "null":
        return F.when(~F.coalesce(late | early, F.lit(False)), site.refused(name))
    # A key with another value, or without one, would be the key of another row.
    remedy = _REMEDY if site.infinite == "fail" else "such a time cannot be a key of a table"
    refused = site.failed(f"a {name} {_BEYOND}", remedy)
    return F.when(late | early, refused).otherwise(site.refused(name))


def _from_number(
    name: str,
    spark: DataType,
    convert: Callable[[Column], Column],
    within: tuple[int, int],
    early: int,
    ends: tuple[tuple[int, ...], tuple[int, ...]],
) -> Convert:
    """Convert a number of days or of parts of a second.

    Args:
        name: The type in words.
        spark: Type of the target column.
        convert: Converts an ordinary value.
        within: First and last ordinary value. The only condition that is evaluated for most values.
        early: Lowest number of a source before the ordinary values; it has none after them.
        ends: Further numbers that mean infinity and -infinity.
    """
    first, last = within
    positive, negative = ends

    def conversion(value: Column, site: Site) -> Column:
        is_late = (value > last) | value.isin(*positive)
        is_early = value.between(early, first - 1) | value.isin(*negative)
        other = F.when(value.isNotNull(), beyond(spark, name, is_late, is_early, site))
        return F.when(value.between(first, last), convert(value)).otherwise(other)

    return conversion


_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""1 January 0001 and 31 December 9999."""

_EARLIEST_DAY = -2_440_588
"""24 November 4714 BC: no database has a date before PostgreSQL's first."""

_DAYS = _from_number(
    "date",
    DateType(),
    F.date_from_unix_date,
    (_FIRST_DAY, _LAST_DAY),
    _EARLIEST_DAY,
    # The streamed number first; then two of a snapshot: the connector's time zone decides.
    ((-2147472692, -622191234, -622191233), (-2147472691, -625821272, -625821271)),
)


def _moments(unit: str, per_second: int, last: int, first: int) -> Convert:
    def convert(value: Column) -> Column:
        # Decimal and not double: 19 digits of nanoseconds do not fit 53 bits.
        whole = value.cast("decimal(20,0)") / F.lit(1_000)
        count = F.floor(whole).cast("bigint") if per_second > _MICRO else value
        return F.expr(_EPOCH) + F.expr(f"INTERVAL '{unit}' SECOND") * count

    day = 86_400 * per_second
    # A long of nanoseconds reaches from the year 1677 to 2262.
    within = max(_FIRST_DAY * day, first + 1), min((_LAST_DAY + 1) * day, last) - 1
    earliest = max(_EARLIEST_DAY * day, first)
    return _from_number(
        "timestamp", TimestampNTZType(), convert, within, earliest, ((last,), (first,))
    )


_MICRO = 1_000_000
_LAST_MICROS, _FIRST_MICROS = 9223372036825200000, -9223372036832400000
_MILLIS = _moments("0.001", 1_000, _LAST_MICROS // 1000, _FIRST_MICROS // 1000)
_MICROS = _moments("0.000001", _MICRO, _LAST_MICROS, _FIRST_MICROS)
_NANOS = _moments("0.000001", 1_000_000_000, 2**63 - 1, -(2**63))


_LONGEST_SECONDS = 839 * 3600
"""More than any time of day or MySQL's TIME, which goes to ±838:59:59."""


def _time_of_day(per_second: int) -> Convert:
    def convert(value: Column) -> Column:
        size = F.abs(value)
        second = F.floor(size / per_second).cast("bigint")
        rest = size % per_second
        micros = (rest * F.lit(1_000_000) / per_second).cast("bigint")
        # MySQL's TIME is a span and may be negative.
        sign = F.when(value < 0, F.lit("-")).otherwise(F.lit(""))
        clock = (sign, F.floor(second / 3600), F.floor(second / 60) % 60, second % 60)
        text = F.format_string("%s%02d:%02d:%02d.%06d", *clock, micros)
        if per_second > 1_000_000:
            finer = F.format_string("%s%02d:%02d:%02d.%09d", *clock, rest)
            text = F.when(rest % 1000 == 0, text).otherwise(finer)
        # Not for NULL, of which format_string makes the text "null".
        longest = _LONGEST_SECONDS * per_second
        return F.when((value > -longest) & (value < longest), text)

    return checked("time", convert)


def _iso_time(value: Column) -> Column:
    bare = F.translate(value, "Z", "")
    is_time = F.concat(F.lit("1970-01-01T"), bare).cast(TimestampNTZType()).isNotNull()
    fraction = F.substring(bare, 10, 9)
    width = F.greatest(F.length(fraction), F.lit(6))
    padded = F.rpad(fraction, 9, "0").substr(F.lit(1), width)
    return F.when(is_time, F.concat(F.substring(bare, 1, 8), F.lit("."), padded))


def _from_text(
    name: str,
    spark: DataType,
    read: Callable[[Column], Column],
    *,
    late: Callable[[Column], Column],
    early: Callable[[Column], Column],
) -> Convert:
    """Convert ISO text; a year of other than four digits has a sign, which identifies it.

    Args:
        name: The type in words.
        spark: Type of the target column.
        read: Gives NULL for text that is no value of the type.
        late: Condition: other texts that mean infinity, or a moment after the year 9999.
        early: Condition: other texts that mean -infinity, or a moment before the year 1.
    """

    def conversion(value: Column, site: Site) -> Column:
        last, first = (F.expr(edge) for edge in EDGES[type(spark)])
        # Compare as text, so that most values are read once and need no other comparison.
        plain_year = value.between("0001-01-02", "9999-12-31")
        at = read(value)
        is_early = early(value) | value.rlike(_BEFORE) | (at < first)
        is_late = late(value) | (~early(value) & (value.rlike(_AFTER) | (at > last)))
        other = F.when(value.isNotNull(), beyond(spark, name, is_late, is_early, site))
        return F.coalesce(F.when(plain_year, at), F.when(at.between(first, last), at), other)

    return conversion


_AFTER, _BEFORE = r"^\+\d{5,9}-\d\d-\d\d", r"^(-\d{4,9}|0000)-\d\d-\d\d"


def _zoned(value: Column) -> Column:
    # Without a zone Spark would use the session's. Debezium writes Z; others need the pattern.
    has_zone = value.endswith("Z") | value.rlike(r"[+-]\d\d(:?\d\d)?$")
    return F.when(has_zone, value.cast("timestamp"))


_ZONED = "zoned timestamp"
_LONG, _TEXT, _NTZ = LongType(), StringType(), TimestampNTZType()

DATE = LogicalType(IntegerType(), DateType(), _DAYS, "date", "days")
MILLI_TIME = LogicalType(_LONG, _TEXT, _time_of_day(1_000), "time", "milliseconds")
MICRO_TIME = LogicalType(_LONG, _TEXT, _time_of_day(1_000_000), "time", "microseconds")
NANO_TIME = LogicalType(_LONG, _TEXT, _time_of_day(1_000_000_000), "time", "nanoseconds")
MILLI_TIMESTAMP = LogicalType(_LONG, _NTZ, _MILLIS, "timestamp", "milliseconds")
MICRO_TIMESTAMP = LogicalType(_LONG, _NTZ, _MICROS, "timestamp", "microseconds")
NANO_TIMESTAMP = LogicalType(_LONG, _NTZ, _NANOS, "timestamp", "nanoseconds")
ZONED_TIMESTAMP = LogicalType(
    _TEXT,
    TimestampType(),
    _from_text(
        _ZONED,
        TimestampType(),
        _zoned,
        late=lambda value: value == "infinity",
        early=lambda value: value == "-infinity",
    ),
    _ZONED,
    "ISO",
)
ISO_TIME = LogicalType(_TEXT, _TEXT, checked("time", _iso_time), "ISO time", "ISO")
ISO_DATE = LogicalType(
    _TEXT,
    DateType(),
    _from_text(
        "date",
        DateType(),
        lambda value: F.translate(value, "Z", "").cast("date"),
        late=lambda value: (value == "-5877611-06-21Z") | value.startswith("+292278994-08-"),
        early=lambda value: (value == "-5877611-06-22Z") | value.startswith("+292269055-12-"),
    ),
    "date",
    "ISO",
)
ISO_TIMESTAMP = LogicalType(
    _TEXT,
    _NTZ,
    _from_text(
        "timestamp",
        _NTZ,
        lambda value: F.translate(value, "Z", "").cast(_NTZ),
        late=lambda value: value == "+294247-01-10T04:00:25.2Z",
        early=lambda value: value == "-290308-12-21T19:59:27.6Z",
    ),
    "timestamp",
    "ISO",
)
