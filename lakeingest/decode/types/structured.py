"""``time.precision.mode=structured`` (Debezium 3.7): dates and times as structs of their parts.

They become the same types as in the other modes, so a connector may change its mode: dates,
timestamps, times of day as text, durations as ISO text. (Spark has no type that keeps months, days
and seconds apart, and a number of microseconds would have to guess the length of a month.)

``specialValue`` stands for infinity; ``precision`` and ``zoneId`` say nothing about the moment.
Source: Debezium's ``StructuredTemporal`` and the types around it.
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
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from lakeingest.decode.types.logical_type import LogicalType, Site, checked
from lakeingest.decode.types.temporal import EDGES, beyond

_DAY = ("year", "month", "day")
_CLOCK = ("hour", "minute", "second", "nanos")
_SPECIAL = StructField("specialValue", StringType())
_SECOND = "INTERVAL '1' SECOND"
_PARTS = "parts"
_FIRST, _LAST = 1, 9999


def _numbers(*names: str) -> list[StructField]:
    kinds = {"seconds": LongType()}
    return [StructField(name, kinds.get(name, IntegerType())) for name in names]


def _moment(
    spark: DataType, name: str, fields: tuple[str, ...], read: Callable[[Column], Column]
) -> LogicalType:
    def convert(value: Column, site: Site) -> Column:
        last, first = (F.expr(edge) for edge in EDGES[type(spark)])
        special, year = value["specialValue"], value["year"]
        moment, finite = read(value), special.isNull()
        # An offset may move the first or the last day into another year.
        at = F.when(finite & year.between(_FIRST, _LAST), moment)
        is_late = (special == "POSITIVE_INFINITY") | (finite & ((year > _LAST) | (at > last)))
        is_early = (special == "NEGATIVE_INFINITY") | (finite & ((year < _FIRST) | (at < first)))
        other = F.when(value.isNotNull(), beyond(spark, name, is_late, is_early, site))
        plain_year = finite & year.between(_FIRST + 1, _LAST - 1)
        return F.coalesce(F.when(plain_year, moment), F.when(at.between(first, last), at), other)

    return LogicalType(StructType([*_numbers(*fields), _SPECIAL]), spark, convert, name, _PARTS)


def _seconds(value: Column) -> Column:
    micros = value["second"].cast("bigint") * 1_000_000 + F.floor(value["nanos"] / 1000)
    return (micros.cast("decimal(10,0)") / F.lit(1_000_000)).cast("decimal(16,6)")


def _parts(value: Column) -> tuple[Column, Column, Column, Column, Column, Column]:
    year, month, day, hour, minute = (value[name] for name in (*_DAY, "hour", "minute"))
    return year, month, day, hour, minute, _seconds(value)


def _zoned(value: Column) -> Column:
    local = F.make_timestamp(*_parts(value), F.lit("UTC"))
    return local - F.expr(_SECOND) * F.coalesce(value["offsetSeconds"], F.lit(0))


def _fraction(nanos: Column, width: int) -> Column:
    """Return a point and ``width`` digits, nine where the value has more."""
    nine_digits = F.format_string(".%09d", nanos)
    return F.when(nanos % 1000 == 0, F.substring(nine_digits, 1, width + 1)).otherwise(nine_digits)


def _time(value: Column) -> Column:
    clock = F.format_string("%02d:%02d:%02d", value["hour"], value["minute"], value["second"])
    text = F.concat(clock, _fraction(value["nanos"], 6))
    # format_string makes the text "null" of NULL.
    return F.when(_has_parts(value, *_CLOCK), text)


def _has_parts(value: Column, *names: str) -> Column:
    present = F.lit(True)
    for name in names:
        present = present & value[name].isNotNull()
    return present


def _zoned_time(value: Column) -> Column:
    clock = F.format_string("%02d:%02d:%02d", value["hour"], value["minute"], value["second"])
    offset = F.coalesce(value["offsetSeconds"], F.lit(0))
    size = F.abs(offset)
    sign = F.when(offset < 0, F.lit("-")).otherwise(F.lit("+"))
    minutes = F.format_string("%s%02d:%02d", sign, F.floor(size / 3600), F.floor(size / 60) % 60)
    zone = (
        F.when(offset == 0, F.lit("Z"))
        .when(size % 60 == 0, minutes)
        .otherwise(F.concat(minutes, F.format_string(":%02d", size % 60)))
    )
    fraction = F.when(value["nanos"] == 0, F.lit("")).otherwise(_fraction(value["nanos"], 6))
    return F.when(_has_parts(value, *_CLOCK), F.concat(clock, fraction, zone))


_SPANS = ("years", "months", "days", "hours", "minutes", "seconds", "nanos")


def _duration(value: Column) -> Column:
    part = {name: F.coalesce(value[name], F.lit(0)) for name in _SPANS}
    per_second = F.lit(1_000_000_000).cast("decimal(10,0)")
    nanos = part["seconds"].cast("decimal(19,0)") * per_second + part["nanos"]
    size = F.abs(nanos)
    fraction = size % per_second
    whole = ((size - fraction) / per_second).cast("decimal(20,0)").cast("string")
    digits = F.lpad(fraction.cast("decimal(9,0)").cast("string"), 9, "0")
    sign = F.when(nanos < 0, F.lit("-")).otherwise(F.lit(""))
    # Nine digits follow the point, so the trim never takes digits of the whole number.
    bare = F.call_function("rtrim", F.lit("0"), F.concat(sign, whole, F.lit("."), digits))
    seconds = F.call_function("rtrim", F.lit("."), bare)
    text = F.format_string("P%dY%dM%dDT%dH%dM%sS", *(part[name] for name in _SPANS[:5]), seconds)
    return F.when(value.isNotNull(), text)


_NTZ, _TEXT = TimestampNTZType(), StringType()

STRUCTURED_DATE = _moment(
    DateType(), "date", _DAY, lambda value: F.make_date(*(value[name] for name in _DAY))
)
STRUCTURED_TIMESTAMP = _moment(
    _NTZ, "timestamp", (*_DAY, *_CLOCK), lambda value: F.make_timestamp_ntz(*_parts(value))
)
STRUCTURED_ZONED_TIMESTAMP = _moment(
    TimestampType(), "zoned timestamp", (*_DAY, *_CLOCK, "offsetSeconds"), _zoned
)
STRUCTURED_TIME = LogicalType(
    StructType(_numbers(*_CLOCK)), _TEXT, checked("time", _time), "structured time", _PARTS
)
STRUCTURED_ZONED_TIME = LogicalType(
    StructType(_numbers(*_CLOCK, "offsetSeconds")),
    _TEXT,
    checked("zoned time", _zoned_time),
    "structured zoned time",
    _PARTS,
)
STRUCTURED_DURATION = LogicalType(
    StructType(_numbers(*_SPANS)),
    _TEXT,
    checked("duration", _duration),
    "structured duration",
    _PARTS,
)
