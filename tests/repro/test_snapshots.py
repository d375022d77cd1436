"""Initial snapshots that arrive in pieces, or were begun more than once."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.forms import further
from tests.repro.history import History

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "waiting",
    [pytest.param((1,), id="half a table"), further((1, 2), id="half a table, then the whole one")],
)
def test_a_partition_with_the_last_row_that_arrives_first_publishes_no_half_table(
    spark: SparkSession, tmp_path: Path, waiting: tuple[int, ...]
) -> None:
    history = History(spark, "snapshot-lag-marker-first", tmp_path)
    for step in waiting:
        summary = history.run(step)
        assert summary.batches == 0
        head, warning = summary.warnings
        assert head.startswith("A first reading begins behind the head of its topic")
        assert warning.startswith("The initial snapshot is not published yet")
    summary = history.run(3)
    assert summary.warnings == (head,)
    assert history.ids("public.lines") == list(range(1, 9))
    assert history.ids("public.orders") == list(range(1, 9))


@pytest.mark.soak
@pytest.mark.parametrize(
    ("name", "twice", "once"),
    [
        ("snapshot-twice-pg", "public.orders", "public.lines"),
        further("snapshot-twice-maria", "shop.a", "shop.b"),
    ],
)
def test_a_row_that_was_deleted_between_two_attempts_at_the_snapshot_is_gone(
    spark: SparkSession, tmp_path: Path, name: str, twice: str, once: str
) -> None:
    history = History(spark, name, tmp_path)
    assert history.run(1).batches == 0
    history.run(2)
    assert history.ids(twice) == [1, 3, 4, 5, 6, 9]
    assert history.ids(once) == [1, 2, 3, 4, 5, 6, 50]
