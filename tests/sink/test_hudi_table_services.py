"""Table services of Hudi tables: with our commits, elsewhere, and cut short by a kill."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakeingest.errors import TransientError
from tests.forms import HARD
from tests.sink.lake import COLLECTION, Lake, Payload, delete, insert, update
from tests.sink.test_hudi import CLEANED, instants

# Real Hudi commits, some seconds each.
pytestmark = pytest.mark.slow

BY_LOOKING = {"hoodie.index.type": "SIMPLE"}
"""Clustering moves rows from file to file, which an index by buckets cannot follow."""

CLUSTERED = {
    **BY_LOOKING,
    "hoodie.clustering.inline": "true",
    "hoodie.clustering.inline.max.commits": "1",
    "hoodie.clustering.plan.strategy.sort.columns": "n",
}


def beside(lake: Lake, operation: str) -> None:
    """Plan or do a clustering as a job beside the pipeline does."""
    path = lake.sink.path(COLLECTION)
    lake.spark.sql(f"CALL run_clustering(path => '{path}', op => '{operation}')").collect()


@pytest.mark.soak
@HARD
def test_a_table_that_is_clustered_with_each_commit_stays_what_it_is(
    hudi_lake: Lake, hard: bool
) -> None:
    hudi_lake.options.update(hard=hard, given={**CLUSTERED, **CLEANED})
    hudi_lake.restart()
    expected: dict[int, tuple[object, ...]] = {}
    published: list[tuple[int, dict[int, tuple[object, ...]]]] = []
    for n in range(1, 7):
        rows = [insert(10 * n + i, 10 * n, n=n, body="x") for i in range(3)]
        expected |= {10 * n + i: (n, "x") for i in range(3)}
        if n > 1:
            before = 10 * (n - 1)
            rows += [update(before, 10 * n, n=-n), delete(before + 1, 10 * n)]
            expected[before] = (-n, "x")
            del expected[before + 1]
        state = hudi_lake.apply(*rows)
        published = [*published[-1:], (state.version, dict(expected))]
        for version, then in published:
            assert hudi_lake.live("n", "body", version=version) == then
        assert hudi_lake.sink.state(COLLECTION) == state
        if n == 3:
            hudi_lake.restart()
    hudi_lake.apply(Payload(11, 11, {"n": 0}))
    assert hudi_lake.live("n", "body") == expected, "a late update brought a deleted row back"
    path = Path(hudi_lake.sink.path(COLLECTION))
    assert instants(path, "replacecommit") >= 6, "it was not clustered"
    assert instants(path, "clean") > 0


def test_a_clustering_that_a_killed_run_left_gives_way_to_the_next_one(hudi_lake: Lake) -> None:
    hudi_lake.restart(given=BY_LOOKING)
    hudi_lake.apply(insert(1, 1, n=1), insert(2, 1, n=1))
    beside(hudi_lake, "schedule")
    path = Path(hudi_lake.sink.path(COLLECTION))
    assert list((path / ".hoodie" / "timeline").glob("*.clustering.requested"))
    hudi_lake.restart(given={**CLUSTERED, "hoodie.clustering.inline.max.commits": "9"})
    state = hudi_lake.apply(Payload(1, 2, {"n": 2}))
    beside(hudi_lake, "execute")
    assert hudi_lake.live() == {1: (2,), 2: (1,)}
    assert hudi_lake.sink.state(COLLECTION) == state


@pytest.mark.soak
def test_a_clustering_elsewhere_that_is_not_done_is_named_and_then_gone_on_after(
    hudi_lake: Lake,
) -> None:
    hudi_lake.restart(given=BY_LOOKING)
    before = hudi_lake.apply(insert(1, 1, n=1), insert(2, 1, n=1))
    beside(hudi_lake, "schedule")
    with pytest.raises(TransientError, match="planned to be clustered.*CALL run_clustering"):
        hudi_lake.sink.apply(
            hudi_lake.changeset(Payload(1, 2, {"n": 2})), hudi_lake.note(2), before
        )
    assert hudi_lake.sink.state(COLLECTION) == before
    beside(hudi_lake, "execute")
    hudi_lake.restart(given=BY_LOOKING)
    hudi_lake.apply(Payload(1, 2, {"n": 2}))
    assert hudi_lake.live() == {1: (2,), 2: (1,)}
    assert hudi_lake.live(version=before.version) == {1: (1,), 2: (1,)}
