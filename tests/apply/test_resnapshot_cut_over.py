"""Where a new snapshot cuts the log: by incarnation, or not at all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakeingest.apply.window.offset_ranges import WindowRanges
from lakeingest.apply.window.resnapshot_cut_over import (
    SnapshotCutOver,
    Stretch,
    cut_over,
    open_epoch,
)
from lakeingest.errors import DataError
from lakeingest.ledger.publication import Frontier, Publication
from lakeingest.position import after
from lakeingest.position.epochs import Epoch
from lakeingest.source.contract import OffsetRange, TopicPartition
from lakeingest.transaction.cut import End

A, B, C = (TopicPartition(f"t.{name}", 0) for name in "abc")
FRONTIER = Frontier(end_offset=9, streaming=True, committed_ms=5)


def ranges(**ends: int) -> WindowRanges:
    data = tuple(OffsetRange(f"t.{name}", 0, 0, end) for name, end in ends.items())
    return WindowRanges(OffsetRange("t.transaction", 0, 10, 50), data, frozenset())


def test_a_partition_is_cut_at_its_first_row_of_the_connector_that_took_the_snapshot() -> None:
    stretches = [
        Stretch(A, "old", 0, 4, False, 11, 13),
        Stretch(A, "new", 5, 9, True, 15, 15),
        Stretch(B, "old", 0, 2, False, 13, 13),
        Stretch(B, "new", 3, 5, False, 17, 17),
    ]
    cut = cut_over(stretches, ranges(a=10, b=6), FRONTIER)
    assert cut == SnapshotCutOver({A: 5, B: 3}, 14)
    before = cut.before(ranges(a=10, b=6))
    ends = [(part.topic, part.end) for part in before.all]
    assert ends == [("t.transaction", 14), ("t.a", 5), ("t.b", 3)]
    assert before.whole


def test_rows_of_a_connector_that_was_restarted_since_are_new_too() -> None:
    stretches = [
        Stretch(A, "new", 0, 4, True),
        Stretch(A, "restarted", 5, 9, False),
        Stretch(B, "restarted", 7, 9, False),
    ]
    assert cut_over(stretches, ranges(a=10, b=10), FRONTIER) == SnapshotCutOver({A: 0, B: 7}, 10)


def test_a_partition_without_a_new_row_is_cut_at_its_end() -> None:
    stretches = [
        Stretch(A, "old", 0, 4, False, 12, 12),
        Stretch(A, "new", 5, 9, True),
        Stretch(B, "old", 0, 2, False, 12, 12),
    ]
    cut = cut_over(stretches, ranges(a=10, b=3, c=4), FRONTIER)
    assert cut == SnapshotCutOver({A: 5, B: 3, C: 4}, 13)


def test_what_is_surely_new_is_not_taken_for_old() -> None:
    """A restored server counts its transactions again, so an old row may seem to have a new END."""
    stretches = [Stretch(A, "old", 0, 4, False, 12, 30), Stretch(A, "new", 5, 9, True, 20, 31)]
    assert cut_over(stretches, ranges(a=10), FRONTIER).end_offset == 20


def test_ends_without_rows_are_old_where_they_could_lie_above_new_ones() -> None:
    def begin(first_new: int | None, *ends: tuple[int, int, int]) -> int:
        old, new = Stretch(A, "old", 0, 4, False, 11, 11), Stretch(A, "new", 5, 9, True, first_new)
        end_records = [End(offset, rows, after(0, at)) for offset, at, rows in ends]
        return cut_over([old, new], ranges(a=10), FRONTIER, end_records).end_offset

    assert begin(17, (13, 95, 0), (15, 50, 0), (17, 60, 1)) == 14
    assert begin(17, (13, 95, 0), (17, 99, 1)) == 12
    assert begin(None, (13, 95, 0), (15, 50, 0)) == 16
    # The rows of the last one are under way.
    assert begin(None, (13, 95, 0), (15, 96, 2)) == 12


@pytest.mark.parametrize(
    ("stretches", "why"),
    [
        ([Stretch(A, None, 0, 9, True)], "no header"),
        ([Stretch(A, "new", 0, 9, True), Stretch(B, None, 0, 9, False)], "no header"),
        ([Stretch(A, "new", 0, 9, True), Stretch(B, "else", 0, 9, False)], "a runId that no"),
        ([Stretch(A, "old", 0, 7, False), Stretch(A, "new", 5, 9, True)], "on demand"),
        (
            [
                Stretch(A, "new", 5, 9, True),
                Stretch(A, "old", 0, 4, False),
                Stretch(B, "new", 1, 9, True),
                Stretch(B, "old", 10, 11, False),
            ],
            "on demand",
        ),
    ],
)
def test_a_seam_that_cannot_be_told_is_refused(stretches: list[Stretch], why: str) -> None:
    with pytest.raises(DataError, match=why):
        cut_over(stretches, ranges(a=10, b=12), FRONTIER)


def test_the_frontier_behind_a_seam_waits_for_the_snapshot_in_the_next_epoch() -> None:
    epochs, offsets = (Epoch(0, "x", highest=9), Epoch(1, "y")), {"t.a": {0: 3, 1: 4}}
    read = replace(FRONTIER, end_position="0001", read_offset=20)
    frontier = replace(read, offsets=offsets, epochs=epochs)
    head = Publication(batch=7, writer=2, tables={"a": 5}, transactions=8, frontier=frontier)
    made = open_epoch(head, SnapshotCutOver({A: 5, B: 3}, 14), "me")
    assert (made.batch, made.tables, made.transactions, made.run) == (8, {"a": 5}, 0, "me")
    assert made.opened == (Epoch(2, "", end_offset=14),)
    behind = {"t.a": {0: 5, 1: 4}, "t.b": {0: 3}}
    assert made.frontier == Frontier(
        end_offset=13, end_position="0001", offsets=behind, epoch=2, read_offset=20
    )
