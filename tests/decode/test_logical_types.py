"""Every logical type against the value that the source had; one job for all of them."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

from pyspark.sql import SparkSession

from lakeingest.decode.types.composed import array, mapping, pairs, struct
from lakeingest.decode.types.decimals import decimal
from lakeingest.decode.types.logical import PRIMITIVES, SEMANTIC
from lakeingest.decode.types.octets import binary
from tests.decode.wire import Cases, decode_cases, unscaled

TIME = "io.debezium.time."
CONNECT = "org.apache.kafka.connect.data."
DATA = "io.debezium.data."

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def day(year: int, month: int, dom: int) -> int:
    return (datetime.date(year, month, dom) - datetime.date(1970, 1, 1)).days


def micros(*parts: int) -> int:
    moment = datetime.datetime(*parts, tzinfo=datetime.timezone.utc)  # type: ignore[misc,arg-type]
    return (moment - EPOCH) // datetime.timedelta(microseconds=1)


DATES = [
    (0, datetime.date(1970, 1, 1)),
    (-1, datetime.date(1969, 12, 31)),
    (day(2026, 2, 28), datetime.date(2026, 2, 28)),
    (day(1582, 10, 4), datetime.date(1582, 10, 4)),
    (day(1, 1, 1), datetime.date(1, 1, 1)),
    (day(9999, 12, 31), datetime.date(9999, 12, 31)),
    (None, None),
]
MILLIS = [
    (0, "1970-01-01 00:00:00"),
    (-1, "1969-12-31 23:59:59.999"),
    (micros(2026, 3, 8, 2, 30) // 1000, "2026-03-08 02:30:00"),
    (micros(1900, 1, 1) // 1000, "1900-01-01 00:00:00"),
    (None, None),
]
MICROS = [
    (0, "1970-01-01 00:00:00"),
    (-1, "1969-12-31 23:59:59.999999"),
    (1767323045123456, "2026-01-02 03:04:05.123456"),
    (micros(2026, 3, 8, 2, 30), "2026-03-08 02:30:00"),
    (micros(1, 1, 1), "0001-01-01 00:00:00"),
    (micros(9999, 12, 31, 23, 59, 59, 999_999), "9999-12-31 23:59:59.999999"),
    (None, None),
]
NANOS = [
    (0, "1970-01-01 00:00:00"),
    (-1, "1969-12-31 23:59:59.999999"),
    (-1000, "1969-12-31 23:59:59.999999"),
    (1_999, "1970-01-01 00:00:00.000001"),
    (None, None),
]
ZONED = [
    ("2026-01-02T01:04:05Z", micros(2026, 1, 2, 1, 4, 5)),
    *(
        (
            f"2026-01-02T01:04:05.{'123456789'[:digits]}Z",
            micros(2026, 1, 2, 1, 4, 5, int("123456789"[:digits].ljust(6, "0")[:6])),
        )
        for digits in range(1, 10)
    ),
    ("2026-01-02T01:04:05.100000+02:00", micros(2026, 1, 1, 23, 4, 5, 100000)),
    ("1969-12-31T23:59:59.999999Z", -1),
    ("0001-01-01T00:00:00Z", micros(1, 1, 1)),
    ("2026-03-08T02:30:00Z", micros(2026, 3, 8, 2, 30)),
    ("9999-12-31T23:59:59.999999Z", micros(9999, 12, 31, 23, 59, 59, 999_999)),
    ("9999-12-31T13:00:00-10:00", micros(9999, 12, 31, 23)),
    (None, None),
]


def times(per_second: int) -> list[tuple[int, str]]:
    return [
        (0, "00:00:00.000000"),
        (per_second - 1, f"00:00:00.{str(per_second - 1).ljust(6, '0')}"),
        (per_second // 1000, "00:00:00.001000"),
        (86_399 * per_second, "23:59:59.000000"),
        (86_400 * per_second, "24:00:00.000000"),
        # MySQL's TIME goes on to 838 hours.
        ((838 * 3600 + 59 * 60 + 59) * per_second, "838:59:59.000000"),
    ]


VARIABLE = [
    ({"scale": 2, "value": unscaled(-5)}, "-0.05"),
    ({"scale": 0, "value": unscaled(0)}, "0"),
    ({"scale": 3, "value": unscaled(0)}, "0.000"),
    ({"scale": 1, "value": unscaled(-128)}, "-12.8"),
    ({"scale": 40, "value": unscaled(7)}, "0." + "0" * 39 + "7"),
    ({"scale": 5, "value": unscaled(10**30 + 1)}, "10000000000000000000000000.00001"),
    ({"scale": 0, "value": unscaled(10**38 - 1)}, "9" * 38),
    ({"scale": 0, "value": unscaled(10**38)}, "1" + "0" * 38),
    ({"scale": 2, "value": unscaled(-(10**64) - 7)}, "-1" + "0" * 61 + "0.07"),
    ({"scale": -3, "value": unscaled(12)}, "12000"),
    (None, None),
]

TYPES: Cases = {
    "boolean": (PRIMITIVES["boolean"], [(True, True), (False, False), (None, None)]),
    "int8": (PRIMITIVES["int8"], [(-128, -128), (127, 127), (None, None)]),
    "int16": (PRIMITIVES["int16"], [(-(2**15), -(2**15)), (2**15 - 1, 2**15 - 1)]),
    "int32": (PRIMITIVES["int32"], [(-(2**31), -(2**31)), (2**31 - 1, 2**31 - 1)]),
    "int64": (PRIMITIVES["int64"], [(-(2**63), -(2**63)), (2**63 - 1, 2**63 - 1)]),
    "float": (PRIMITIVES["float"], [(1.5, 1.5), (-0.25, -0.25), ("Infinity", float("inf"))]),
    "double": (
        PRIMITIVES["double"],
        [(0.1, 0.1), (5e-324, 5e-324), (7, 7.0), ("-Infinity", float("-inf")), (None, None)],
    ),
    "string": (
        PRIMITIVES["string"],
        [
            *((each, each) for each in ("", "null", 'a\u0000"\\/\n\u2028é😀', None)),
            ({"a": [1, None]}, '{"a":[1,null]}'),
        ],
    ),
    "bytes": (binary(), [("", ""), ("AP+A", "00FF80"), ("X18=", "5F5F"), (None, None)]),
    "base64": (binary("base64"), [("+/+/", "FBFFBF")]),
    "url_safe": (binary("base64-url-safe"), [("-_-_", "FBFFBF"), ("AA==", "00")]),
    "hex": (binary("hex"), [("00ff80", "00FF80"), ("", ""), (None, None)]),
    "bits": (SEMANTIC[DATA + "Bits"], [("BQA=", "0500"), (None, None)]),
    "date": (SEMANTIC[TIME + "Date"], DATES),
    "connect_date": (SEMANTIC[CONNECT + "Date"], DATES),
    "iso_date": (
        SEMANTIC[TIME + "IsoDate"],
        [("2017-09-15Z", datetime.date(2017, 9, 15)), ("1969-12-31Z", datetime.date(1969, 12, 31))],
    ),
    "year": (SEMANTIC[TIME + "Year"], [(1901, 1901), (2155, 2155)]),
    "time": (SEMANTIC[TIME + "Time"], times(1_000)),
    "connect_time": (SEMANTIC[CONNECT + "Time"], times(1_000)),
    "micro_time": (SEMANTIC[TIME + "MicroTime"], times(1_000_000)),
    "nano_time": (SEMANTIC[TIME + "NanoTime"], times(1_000_000_000)),
    "timestamp": (SEMANTIC[TIME + "Timestamp"], MILLIS),
    "connect_timestamp": (SEMANTIC[CONNECT + "Timestamp"], MILLIS),
    "micro_timestamp": (SEMANTIC[TIME + "MicroTimestamp"], MICROS),
    "nano_timestamp": (SEMANTIC[TIME + "NanoTimestamp"], NANOS),
    "zoned": (SEMANTIC[TIME + "ZonedTimestamp"], ZONED),
    "iso_time": (
        SEMANTIC[TIME + "IsoTime"],
        [
            ("04:05:11.789Z", "04:05:11.789000"),
            ("00:00:00Z", "00:00:00.000000"),
            ("23:59:59.123456789Z", "23:59:59.123456789"),
            ("23:59:59.123456Z", "23:59:59.123456"),
            (None, None),
        ],
    ),
    "iso_timestamp": (
        SEMANTIC[TIME + "IsoTimestamp"],
        [
            ("2017-09-15T04:05:11.789Z", "2017-09-15 04:05:11.789"),
            ("2026-03-08T02:30:00Z", "2026-03-08 02:30:00"),
        ],
    ),
    "variable": (SEMANTIC[DATA + "VariableScaleDecimal"], VARIABLE),
    "sparse": (
        struct(
            {
                "dimensions": PRIMITIVES["int16"],
                "vector": pairs(PRIMITIVES["int16"], PRIMITIVES["double"]),
            }
        ),
        [
            ({"dimensions": 25, "vector": [[1, 10], [11, 0.1]]}, (25, {1: 10.0, 11: 0.1})),
            ({"dimensions": 3, "vector": []}, (3, {})),
            (None, None),
        ],
    ),
    "vector": (array(PRIMITIVES["float"]), [([0.5, -1], [0.5, -1.0]), ([], [])]),
    "dates": (
        array(SEMANTIC[TIME + "Date"]),
        [
            ([0, None, -1], [datetime.date(1970, 1, 1), None, datetime.date(1969, 12, 31)]),
            ([], []),
            (None, None),
        ],
    ),
    "texts": (array(PRIMITIVES["string"]), [(["", None, "x"], ["", None, "x"]), (None, None)]),
    "nested": (
        array(array(decimal(5, 1))),
        [([[unscaled(-15)], None, []], [[Decimal("-1.5")], None, []])],
    ),
    "hstore": (
        mapping(PRIMITIVES["string"]),
        [({"a": "1", "b": None}, {"a": "1", "b": None}), ({}, {}), (None, None)],
    ),
    "date_map": (mapping(SEMANTIC[TIME + "Date"]), [({"a": 1}, {"a": datetime.date(1970, 1, 2)})]),
    "point": (
        struct({"x": PRIMITIVES["double"], "wkb": binary(), "srid": PRIMITIVES["int32"]}),
        [({"x": 1.5, "wkb": "AQ==", "srid": None}, (1.5, bytearray(b"\x01"), None)), (None, None)],
    ),
}


PARTS = ("year", "month", "day", "hour", "minute", "second", "nanos")
SPANS = ("years", "months", "days", "hours", "minutes", "seconds", "nanos")


def parts(names: tuple[str, ...], *numbers: int, **more: Any) -> dict[str, Any]:
    return dict(zip(names, numbers, strict=True)) | more


STRUCTURED: Cases = {
    "date": (
        SEMANTIC[TIME + "StructuredDate"],
        [
            (parts(PARTS[:3], 2024, 2, 29), datetime.date(2024, 2, 29)),
            (parts(PARTS[:3], 1, 1, 1, specialValue=None), datetime.date(1, 1, 1)),
            (None, None),
        ],
    ),
    "time": (
        SEMANTIC[TIME + "StructuredTime"],
        [
            (parts(PARTS[3:], 4, 5, 6, 0, precision=6), "04:05:06.000000"),
            (parts(PARTS[3:], 24, 0, 0, 0), "24:00:00.000000"),
            (parts(PARTS[3:], 23, 59, 59, 123_456_000), "23:59:59.123456"),
            (parts(PARTS[3:], 23, 59, 59, 1), "23:59:59.000000001"),
            (None, None),
        ],
    ),
    "timestamp": (
        SEMANTIC[TIME + "StructuredTimestamp"],
        [
            (parts(PARTS, 2026, 3, 8, 2, 30, 5, 123_456_789), "2026-03-08 02:30:05.123456"),
            (parts(PARTS, 1, 1, 1, 0, 0, 0, 0, precision=0), "0001-01-01 00:00:00"),
            (parts(PARTS, 9999, 12, 31, 23, 59, 59, 999_999_999), "9999-12-31 23:59:59.999999"),
            (None, None),
        ],
    ),
    "zoned": (
        SEMANTIC[TIME + "StructuredZonedTimestamp"],
        [
            (
                parts(PARTS, 2026, 3, 8, 2, 30, 5, 999_999_999, offsetSeconds=7200, zoneId="X"),
                micros(2026, 3, 8, 0, 30, 5, 999_999),
            ),
            (parts(PARTS, 1969, 12, 31, 23, 59, 59, 0, offsetSeconds=0), -1_000_000),
            (parts(PARTS, 2026, 1, 1, 0, 0, 0, 0), micros(2026, 1, 1)),
            (None, None),
        ],
    ),
    "zoned_time": (
        SEMANTIC[TIME + "StructuredZonedTime"],
        [
            (parts(PARTS[3:], 24, 0, 0, 0, offsetSeconds=19800), "24:00:00+05:30"),
            (
                parts(PARTS[3:], 1, 2, 3, 500_000_000, offsetSeconds=-3661),
                "01:02:03.500000-01:01:01",
            ),
            (parts(PARTS[3:], 1, 2, 3, 0, offsetSeconds=0), "01:02:03Z"),
            (None, None),
        ],
    ),
    "duration": (
        SEMANTIC[TIME + "StructuredDuration"],
        [
            (parts(SPANS, 1, 2, 3, 4, 5, 6, 780_000_000), "P1Y2M3DT4H5M6.78S"),
            (parts(SPANS, 0, 0, 0, 0, 0, 0, 0), "P0Y0M0DT0H0M0S"),
            (parts(SPANS, -1, 0, 0, 0, 0, -1, -500_000_000), "P-1Y0M0DT0H0M-1.5S"),
            (parts(SPANS, 0, 0, 0, 0, 0, 600, 1), "P0Y0M0DT0H0M600.000000001S"),
            (parts(SPANS, 0, 0, 0, 0, 0, 3_000_000_000, 0), "P0Y0M0DT0H0M3000000000S"),
            (None, None),
        ],
    ),
}


def wrong(spark: SparkSession, cases: Cases) -> list[tuple[str, Any, Any]]:
    return [case for case in decode_cases(spark, cases) if case[1] != case[2]]


def test_every_logical_type_decodes_to_the_sources_value(spark: SparkSession) -> None:
    assert wrong(spark, TYPES) == []


def test_a_structured_time_is_what_the_other_modes_give(spark: SparkSession) -> None:
    assert wrong(spark, STRUCTURED) == []


def test_every_semantic_name_is_among_the_types_tested() -> None:
    tested = {id(kind) for kind, _ in (*TYPES.values(), *STRUCTURED.values())}
    assert {name for name, kind in SEMANTIC.items() if id(kind) not in tested} == set()


def test_the_session_time_zone_does_not_enter_a_value(spark: SparkSession) -> None:
    for zone in ("America/New_York", "Asia/Kathmandu"):
        elsewhere = spark.newSession()
        elsewhere.conf.set("spark.sql.session.timeZone", zone)
        assert wrong(elsewhere, TYPES) == [], zone
