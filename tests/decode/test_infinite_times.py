"""Infinite dates and timestamps, and years that no lake holds, as Debezium writes them."""

from __future__ import annotations

import datetime
import re
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakeingest.decode.columns import SourceColumn
from lakeingest.decode.encodings import Encodings
from lakeingest.decode.json.rows import JsonRows
from lakeingest.decode.row import with_key
from lakeingest.decode.types.logical import PRIMITIVES, SEMANTIC
from tests.decode.wire import Cases, decode_cases, event, failures

TIME = "io.debezium.time."
FIRST_DAY, LAST_DAY = datetime.date(1, 1, 1), datetime.date(9999, 12, 31)
FIRST, LAST = "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"
FIRST_MICROS = -62_135_596_800_000_000
LAST_MICROS = 253_402_300_799_999_999


def day(year: int, month: int = 1, dom: int = 1, **parts: int) -> dict[str, int]:
    """Return the parts of a structured time."""
    clock = {"hour": 0, "minute": 0, "second": 0, "nanos": 0}
    return {"year": year, "month": month, "day": dom, **clock, **parts}


DAYS, TIMES, MOMENTS = (LAST_DAY, FIRST_DAY), (LAST, FIRST), (LAST_MICROS, FIRST_MICROS)

WIRE: dict[str, tuple[list[Any], list[Any], tuple[Any, Any]]] = {
    # Infinity streamed, then as a snapshot has it west and east of Greenwich; then the years next
    # to those that a lake holds, and the last and the first of PostgreSQL's.
    "Date": (
        [-2147472692, -622191234, -622191233, 2932897, 2145031948],
        [-2147472691, -625821272, -625821271, -719163, -2440588],
        DAYS,
    ),
    "Timestamp": (
        [9223372036825200, 253402300800000, 2**63 - 1],
        [-9223372036832400, -62135596800001, -210866803200000],
        TIMES,
    ),
    # Debezium's long has no more room at the end of PostgreSQL's last years.
    "MicroTimestamp": (
        [9223372036825200000, LAST_MICROS + 1, 9223371331200000000, 2**63 - 1],
        [-9223372036832400000, FIRST_MICROS - 1, -210866803200000000],
        TIMES,
    ),
    "NanoTimestamp": ([2**63 - 1], [-(2**63)], TIMES),
    "ZonedTimestamp": (
        [
            "infinity",
            "+10000-01-01T00:00:00Z",
            "+294276-12-31T23:59:59.999999Z",
            "9999-12-31T23:59:59.9999999-14:00",
        ],
        [
            "-infinity",
            "0000-12-31T23:59:59.999999Z",
            "-4713-11-24T00:00:00Z",
            "0001-01-01T00:00:00+14:00",
        ],
        MOMENTS,
    ),
    "IsoDate": (
        [
            "-5877611-06-21Z",
            "+292278994-08-16Z",
            "+292278994-08-17Z",
            "+10000-01-01Z",
            "+5874897-12-31Z",
        ],
        [
            "-5877611-06-22Z",
            "+292269055-12-02Z",
            "+292269055-12-03Z",
            "0000-12-31Z",
            "-4713-11-24Z",
        ],
        DAYS,
    ),
    "IsoTimestamp": (
        ["+294247-01-10T04:00:25.2Z", "+10000-01-01T00:00:00Z", "+294276-12-31T23:59:59.999999Z"],
        ["-290308-12-21T19:59:27.6Z", "0000-12-31T23:59:59Z", "-4713-11-24T00:00:00Z"],
        TIMES,
    ),
    **{
        f"Structured{name}": (
            [{"specialValue": "POSITIVE_INFINITY"}, day(10000), day(294276, 12, 31), *late],
            [{"specialValue": "NEGATIVE_INFINITY"}, day(0, 12, 31), day(-4713, 11, 24), *early],
            edges,
        )
        for name, edges, late, early in (
            ("Date", DAYS, [day(5874897)], []),
            ("Timestamp", TIMES, [], []),
            (
                "ZonedTimestamp",
                MOMENTS,
                [day(9999, 12, 31, hour=23, offsetSeconds=-3600)],
                [day(1, hour=1, offsetSeconds=7200)],
            ),
        )
    },
}
"""Wire values of each type that are late, those that are early, and the edge of either."""


def cases(*, edge: bool) -> Cases:
    return {
        name: (
            SEMANTIC[TIME + name],
            [
                *((value, last if edge else None) for value in positive),
                *((value, first if edge else None) for value in negative),
            ],
        )
        for name, (positive, negative, (last, first)) in WIRE.items()
    }


def test_infinite_times_become_the_edge_that_every_engine_reads(spark: SparkSession) -> None:
    outcomes = decode_cases(spark, cases(edge=True), Encodings(infinite="edge"))
    assert [case for case in outcomes if case[1] != case[2]] == []


def test_infinite_times_become_null_where_the_user_says_so(spark: SparkSession) -> None:
    outcomes = decode_cases(spark, cases(edge=False), Encodings(infinite="null"))
    assert [case for case in outcomes if case[1] is not None] == []


FAILED = (PySparkException, Py4JJavaError)


@pytest.fixture(scope="module")
def refused(spark: SparkSession) -> dict[str, str | None]:
    """Why the first late value of each type failed; each is in a column of its type's name."""
    columns = [SourceColumn(name, SEMANTIC[TIME + name]) for name in WIRE]
    texts = [event({name: late[0]}) for name, (late, _, _) in WIRE.items()]
    return dict(zip(WIRE, failures(spark, columns, texts), strict=True))


@pytest.mark.parametrize("name", WIRE)
def test_an_infinite_time_stops_the_run_and_names_the_setting(
    refused: dict[str, str | None], name: str
) -> None:
    reason = refused[name] or "it did not fail"
    assert re.search(f"column '{name}'.*lakeingest.infinite.times=edge", reason)


def test_an_infinite_key_is_refused_whatever_the_setting(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(b'{"at":"infinity","id":1}',)], "key binary")
    columns = [
        SourceColumn("id", PRIMITIVES["int32"]),
        SourceColumn("at", SEMANTIC[TIME + "ZonedTimestamp"]),
    ]
    with pytest.raises(FAILED, match="such a time cannot be a key"):
        with_key(frame, columns, "row", JsonRows()).select(F.col("row.at")).collect()
