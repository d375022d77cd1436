"""What Hudi's table services are told, by the user's settings and the commits that are there."""

from __future__ import annotations

import pytest

from lakeingest.commit_note import fence_token, token
from lakeingest.engine.commit import Commit
from lakeingest.sink.hudi.table_services import (
    LEAST_RETAINED,
    layout,
    retention,
    unfinished_clustering,
)
from lakeingest.sink.hudi.unfinished_commits import leaves_unfinished
from tests.notes import commit_note

CLEANED = {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1"}


def commit(version: int, writer: int, batch: int, *, fence: bool = False) -> Commit:
    """Return a commit of a writer: of a batch's rows, or one that only shuts out others."""
    of = fence_token(writer, 0) if fence else token(writer, batch)
    note = commit_note("public.a", writer=writer, batch=batch, token=of, end_position="x")
    return Commit(version=version, metadata=note.to_json())


def retained(newest_first: list[Commit]) -> int:
    """Return how many commits the next write leaves."""
    return int(retention(CLEANED, newest_first)["hoodie.clean.commits.retained"])


def test_however_often_a_batch_is_tried_again_the_published_one_before_it_stays() -> None:
    """Another table's part of the batch fails each time, so this one has it again and again."""
    published = [commit(batch, 1, batch) for batch in range(1, 6)]
    tried = []
    for writer in range(2, 30):
        tried.append(commit(10 * writer, writer, 5, fence=True))
        tried.append(commit(10 * writer + 1, writer, 6))
    # Two runs that ended before they wrote a row.
    tried += [commit(10 * writer, writer, 6, fence=True) for writer in (30, 31)]
    # Batches 6, 5 and 4, of which 6 has two commits of each of 28 runs, and the one to come.
    assert retained([*tried[::-1], *published[::-1]]) == 2 * 28 + 2 + 2 + 1
    assert retained(published[::-1]) == LEAST_RETAINED + 1


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({}, False),
        ({"hoodie.write.concurrency.mode": "single_writer"}, False),
        ({"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}, True),
        ({"hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL"}, True),
        ({"hoodie.cleaner.policy.failed.writes": "LAZY"}, True),
        ({"hoodie.clean.failed.writes.policy": "EAGER"}, False),
    ],
)
def test_unfinished_commits_are_looked_for_only_where_hudi_leaves_them(
    given: dict[str, str], left: bool
) -> None:
    assert leaves_unfinished(given) is left


ALONE = {"hoodie.index.type": "SIMPLE", "hoodie.clustering.inline": "true"}


@pytest.mark.parametrize(
    "given",
    [
        {**ALONE, "hoodie.clustering.inline": "false"},
        {**ALONE, "hoodie.index.type": "BUCKET"},
        {**ALONE, "hoodie.write.concurrency.mode": "optimistic_concurrency_control"},
        {**ALONE, "hoodie.clustering.updates.strategy": "SparkRejectUpdateStrategy"},
    ],
)
def test_a_clustering_is_taken_back_only_where_nobody_else_can_have_begun_it(
    given: dict[str, str],
) -> None:
    assert unfinished_clustering(ALONE)
    assert unfinished_clustering(given) == {}


def test_numbers_of_buckets_for_some_partitions_are_part_of_where_rows_lie() -> None:
    """Without them rows would be looked for in other files, and written twice (measured)."""
    plain = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    some = {**plain, "hoodie.bucket.index.partition.expressions": "n=1,8"}
    assert layout(plain) == "bucket SIMPLE 2"
    assert layout(some) == "bucket SIMPLE 2 n=1,8"
