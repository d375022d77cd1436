"""A value that does not fit its type fails the job; it never becomes NULL or another value."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import DecimalType

from lakeingest.decode.columns import SourceColumn
from lakeingest.decode.types.composed import array
from lakeingest.decode.types.decimals import decimal
from lakeingest.decode.types.logical import JSON, PRIMITIVES, SEMANTIC
from lakeingest.decode.types.logical_type import CONVERSION_FAILED, LogicalType
from lakeingest.decode.types.octets import binary
from tests.decode.wire import Cases, decode_cases, event, failures, unscaled

TIME = "io.debezium.time."
VARIABLE = SEMANTIC["io.debezium.data.VariableScaleDecimal"]


UNFIT: dict[str, tuple[LogicalType, Any]] = {
    "an integer beyond 32 bits": (PRIMITIVES["int32"], 2**31),
    "an integer beyond 64 bits": (PRIMITIVES["int64"], 2**63),
    "an integer beyond 16 bits": (PRIMITIVES["int16"], 40_000),
    "a fraction as an integer": (PRIMITIVES["int32"], 1.5),
    "text as an integer": (PRIMITIVES["int64"], "5"),
    "empty text as an integer": (PRIMITIVES["int32"], ""),
    "a number as a boolean": (PRIMITIVES["boolean"], 1),
    "text as an array": (array(PRIMITIVES["string"]), "x"),
    "a wrong element of an array": (array(PRIMITIVES["int32"]), [1, "x"]),
    "a decimal beyond its precision": (decimal(10, 2), unscaled(10**10)),
    "a negative decimal beyond its precision": (decimal(10, 2), unscaled(-(10**10))),
    "a decimal of 39 digits": (decimal(38, 0), unscaled(10**38)),
    "a number beyond its precision": (decimal(10, 2, "double"), 12345678901.5),
    "a number of more digits after the point": (decimal(10, 2, "double"), 1.234),
    "an exact number of more digits after the point": (decimal(10, 2, "numeric"), 1.234),
    "NaN as a decimal": (decimal(10, 2, "string"), "NaN"),
    "text that is no hexadecimal": (binary("hex"), "zz"),
    "a zoned timestamp in month 13": (SEMANTIC[TIME + "ZonedTimestamp"], "2026-13-01T00:00:00Z"),
    "an ISO date that is none": (SEMANTIC[TIME + "IsoDate"], "2026-02-30Z"),
    "an ISO timestamp that is none": (SEMANTIC[TIME + "IsoTimestamp"], "yesterday"),
    "milliseconds beyond Spark's range": (SEMANTIC[TIME + "Timestamp"], 2**62),
    "an integer beyond 8 bits": (PRIMITIVES["int8"], 200),
    "a decimal of 9 octets in 18 digits": (decimal(18, 0), unscaled(2**63)),
    "a decimal of 17 octets in 38 digits": (decimal(38, 0), unscaled(10**39)),
    "a variable-scale decimal of more digits than declared": (
        JSON.variable(DecimalType(10, 2)),
        {"scale": 2, "value": unscaled(10**10)},
    ),
    "a variable-scale decimal of a finer scale than declared": (
        JSON.variable(DecimalType(10, 2)),
        {"scale": 3, "value": unscaled(1005)},
    ),
    "an ISO time that is none": (SEMANTIC[TIME + "IsoTime"], "yesterday"),
    "a structured date that is none": (
        SEMANTIC[TIME + "StructuredDate"],
        {"year": 2026, "month": 2, "day": 30},
    ),
    "a structured time without its parts": (SEMANTIC[TIME + "StructuredTime"], {"hour": 1}),
    "days before every calendar": (SEMANTIC[TIME + "Date"], -2440589),
    "plain text where decimal bytes are declared": (decimal(10, 2), "12.50"),
    "a number where decimal bytes are declared": (decimal(10, 2), 12.5),
    "text that is no base64": (binary(), "!a_b-"),
    "a zoned timestamp without zone": (SEMANTIC[TIME + "ZonedTimestamp"], "2026-01-02T01:04:05"),
}


@pytest.fixture(scope="module")
def unfit(spark: SparkSession) -> dict[str, str | None]:
    """Why each of them failed, some at a time: every job is sent the plan of all columns."""
    reasons: dict[str, str | None] = {}
    for first in range(5):
        some = [*UNFIT.items()][first::5]
        columns = [SourceColumn(name, kind) for name, (kind, _) in some]
        texts = [event({name: wire}) for name, (_, wire) in some]
        reasons.update(zip(dict(some), failures(spark, columns, texts), strict=True))
    return reasons


@pytest.mark.parametrize("name", UNFIT)
def test_a_value_that_does_not_fit_fails_and_is_not_replaced_by_another(
    unfit: dict[str, str | None], name: str
) -> None:
    assert unfit[name] is not None


def test_the_message_of_a_failed_conversion_does_not_hold_the_value(spark: SparkSession) -> None:
    column = SourceColumn("c", SEMANTIC[TIME + "ZonedTimestamp"])
    (reason,) = failures(spark, [column], [event({"c": "secret-4711"})])
    assert reason is not None
    assert f"{CONVERSION_FAILED}: column 'c': a value is not a zoned timestamp" in reason
    assert "secret-4711" not in reason


EDGES: Cases = {
    "NULL as a time of day": (SEMANTIC[TIME + "MicroTime"], [(None, None)]),
    "the lowest decimal of 38 digits": (decimal(38, 0), [(unscaled(1 - 10**38), 1 - 10**38)]),
    "a number with a digit that no double holds": (
        decimal(20, 2, "double"),
        [(1234567890123456.5, Decimal("1234567890123456.50")), (0.1, Decimal("0.10"))],
    ),
    "nanoseconds just below a microsecond": (
        SEMANTIC[TIME + "NanoTimestamp"],
        [(1767323045123456999, "2026-01-02 03:04:05.123456")],
    ),
    "a negative time of day": (SEMANTIC[TIME + "MicroTime"], [(-1_500_000, "-00:00:01.500000")]),
    "a negative time of three hours": (
        SEMANTIC[TIME + "MicroTime"],
        [(-3 * 3600 * 1_000_000, "-03:00:00.000000")],
    ),
    "a negative scale": (VARIABLE, [({"scale": -2, "value": unscaled(12)}, "1200")]),
}


def test_values_at_the_edge_decode_exactly(spark: SparkSession) -> None:
    assert [case for case in decode_cases(spark, EDGES) if case[1] != case[2]] == []
