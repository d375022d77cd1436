"""A log that goes back while nobody looks: what came before is applied, what follows stops."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.window.end_markers import EndMarker, ascending_prefix
from lakeingest.errors import DataError
from lakeingest.position import after
from tests.apply.published import table
from tests.logs.written import Sent, WrittenLog, place_of

SERVER = "0e4d5dcd-a33b-11ea-80f1-02010a22a99e"
TABLE = {"postgresql": "public.a", "mysql": "shop.a"}

ORDERS: dict[str, tuple[list[int], int]] = {
    "none": ([], 0),
    "commit order": ([9, 10, 11], 3),
    "two that commit at one place": ([9, 9, 10], 3),
    "the same ones again": ([9, 10, 9, 10, 11], 5),
    "the log starts over": ([9, 10, 8, 11], 2),
    "the log starts over among those that come again": ([9, 11, 9, 10, 12], 3),
}


@pytest.mark.parametrize("name", ORDERS)
def test_ends_are_taken_up_to_an_unseen_one_that_goes_back(name: str) -> None:
    numbers, expected = ORDERS[name]
    ends = [EndMarker(offset, 1, after(0, number)) for offset, number in enumerate(numbers)]
    assert list(ascending_prefix(ends)) == ends[:expected]


def commit(log: WrittenLog, number: int, v: int) -> None:
    """Write a transaction that sets row 1; ``number`` is its commit LSN, or its GTID's number."""
    if log.connector == "postgresql":
        place = place_of(TABLE[log.connector], number - 1, number - 10)
        id_ = f"{number * 7 % 1_000}:{number}"
    else:
        id_ = f"{SERVER}:{number}"
        place = {"db": "shop", "table": "a", "gtid": id_, "file": "b.000001", "pos": 100 + v}
    log.transaction(id_, Sent(TABLE[log.connector], 1, v, place))


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize(
    ("connector", "numbers"),
    [
        ("postgresql", [1_000, 1_500, 2_000, 1_600, 2_100]),
        # Members of a group have blocks of numbers, and the primary changes.
        ("mysql", [500, 1_000_001, 1_000_002, 501, 1_000_003]),
    ],
)
def test_a_log_that_starts_over_within_what_was_not_read_yet_stops_the_run(
    spark: SparkSession, tmp_path: Path, connector: str, numbers: list[int]
) -> None:
    log, lake = WrittenLog(tmp_path / "log", connector), tmp_path / "lake"
    for v, number in enumerate(numbers):
        commit(log, number, v)
    with pytest.raises(DataError, match="the source's log started over"):
        log.ingest(spark, lake)
    assert table(spark, lake, TABLE[connector]) == {1: 2}
