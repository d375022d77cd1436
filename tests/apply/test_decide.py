"""What of a window is released, decided from plain facts: the rules without Spark."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakeingest.apply.window.contents import Attempt, Contents, Portion, RowWithoutEnd
from lakeingest.apply.window.decide import (
    MAX_BATCHES,
    Release,
    Replan,
    Resnapshot,
    decide,
    has_likely_cuts,
    likely_cuts,
    replan,
)
from lakeingest.apply.window.end_markers import EndMarker, OpenTransaction
from lakeingest.apply.window.facts import WindowFacts
from lakeingest.apply.window.incomplete_transaction import NO_END, ONLY_BEGUN, IncompleteTransaction
from lakeingest.apply.window.offset_ranges import WindowRanges
from lakeingest.apply.window.resnapshot_cut_over import Stretch
from lakeingest.apply.window.snapshot_attempts import Verdict
from lakeingest.apply.window.unreadable_records import Unreadable
from lakeingest.apply.window.window import Bounds
from lakeingest.errors import DataError
from lakeingest.frame_schemas import Kind
from lakeingest.ledger.publication import Frontier
from lakeingest.position import after
from lakeingest.position.epochs import Epoch
from lakeingest.source.contract import OffsetRange, TopicPartition
from lakeingest.transaction.compressed_detection import SHARED_PLACE

A, B = TopicPartition("t.public.a", 0), TopicPartition("t.public.b", 0)
ENDS = OffsetRange("t.transaction", 0, 0, 100)
DATA = (OffsetRange(A.topic, 0, 0, 50), OffsetRange(B.topic, 0, 0, 50))
READ_TO_THE_END = WindowRanges(ENDS, DATA, frozenset())
STREAMING = Frontier(streaming=True)
BOUNDS = Bounds(batch_events=10, batch_transactions=None)
LACKS_A_ROW = IncompleteTransaction(
    5, "a row is missing", collection="public.a", expected=2, rows_read=1
)


def end(offset: int, commit: int | None = None, begins: int = 1, events: int = 4) -> EndMarker:
    """Return an END; its transaction begins right before it."""
    number = offset if commit is None else commit
    return EndMarker(offset, events, after(0, number), offset - 1, begins=begins)


def portion(where: TopicPartition, kind: str, position: int, *marks: str) -> Portion:
    name = where.topic.removeprefix("t.")
    return Portion(where, name, kind, 5, 0, after(0, position), 0, frozenset(marks))


def facts(*ends: EndMarker) -> WindowFacts:
    return WindowFacts(READ_TO_THE_END, ends)


THREE = facts(end(3), end(5), end(7))
SNAPSHOT = Contents((portion(A, Kind.SNAPSHOT, 0, "first", "last"), portion(B, Kind.ROW, 9)))


def release(
    window: WindowFacts, frontier: Frontier = STREAMING, bounds: Bounds = BOUNDS
) -> Release:
    decision = decide(window, frontier, bounds)
    assert isinstance(decision, Release)
    return decision


def released(decision: Release) -> list[tuple[int, int]]:
    """Return the first and last END of each batch."""
    return [(cut.first_offset, cut.last_offset) for cut in decision.cuts]


def test_a_window_without_fault_is_released_in_batches_of_whole_transactions() -> None:
    decision = release(THREE)
    assert released(decision) == [(3, 5), (7, 7)]
    assert (decision.waiting, decision.in_the_way, decision.incomplete) == (0, None, None)
    assert decision.ends_read_to == ENDS.end


@pytest.mark.parametrize(
    "window", [replace(THREE, short=LACKS_A_ROW), replace(THREE, interrupted=LACKS_A_ROW)]
)
def test_an_incomplete_transaction_holds_itself_and_all_later_ones_back(
    window: WindowFacts,
) -> None:
    decision = release(window)
    assert released(decision) == [(3, 3)]
    assert decision.waiting == 2
    assert decision.in_the_way == THREE.ends[1]
    assert decision.incomplete == LACKS_A_ROW
    assert decision.ends_read_to is None


def test_the_first_of_several_incomplete_transactions_is_reported() -> None:
    later = replace(LACKS_A_ROW, end_offset=7)
    assert release(replace(THREE, short=later, interrupted=LACKS_A_ROW)).incomplete == LACKS_A_ROW


def test_a_compressed_transaction_without_order_holds_back_all_that_was_read_with_it() -> None:
    compressed = IncompleteTransaction(7, SHARED_PLACE, collection="shop.a")
    decision = release(replace(THREE, short=compressed))
    assert (decision.cuts, decision.incomplete, decision.waiting) == ((), compressed, 3)


def test_what_was_released_before_is_not_released_again() -> None:
    applied = Frontier(end_offset=5, end_position=after(0, 5), streaming=True)
    assert released(release(THREE, applied)) == [(7, 7)]


def test_a_partition_that_was_cut_short_releases_what_it_was_read_past_and_accuses_nobody() -> None:
    ranges = replace(READ_TO_THE_END, cut_short=frozenset({A}))
    read = Contents((portion(A, Kind.ROW, 6), portion(B, Kind.ROW, 9)))
    window = replace(THREE, ranges=ranges, contents=read)
    decision = release(window, bounds=replace(BOUNDS, batch_events=4))
    # The last batch is left to the next window, which fills it.
    assert (released(decision), decision.incomplete) == ([(3, 3)], None)
    assert release(replace(window, short=replace(LACKS_A_ROW, end_offset=7))).incomplete is None


def test_an_unreadable_record_blocks_as_the_end_of_its_partition_does() -> None:
    blocked = {A: Unreadable(A, 20, 1, after(0, 4))}
    read = Contents((portion(B, Kind.ROW, 9),), stopped={A: after(0, 4)})
    assert released(release(replace(THREE, contents=read, unreadable=blocked))) == [(3, 3)]


def test_a_later_transaction_does_not_pass_one_that_has_begun_and_not_ended() -> None:
    decision = release(replace(THREE, opened=OpenTransaction(4, "tx")))
    assert released(decision) == [(3, 3)]
    assert decision.incomplete == IncompleteTransaction(5, NO_END, "tx")


def test_a_begin_that_needs_no_end_is_alone_until_a_row_of_it_is_there() -> None:
    window = replace(facts(), opened=OpenTransaction(4, "tx", alone_since=7))
    row = replace(portion(A, Kind.ROW, 9), unended=RowWithoutEnd(after(0, 4), "tx"))
    assert release(window).alone_since == 7
    assert release(replace(window, contents=Contents((row,)))).alone_since == 0
    assert release(facts()).alone_since == 0


def test_a_begin_from_before_a_new_snapshot_holds_nobody_back() -> None:
    ends = [EndMarker(offset, 4, after(1, offset), offset - 1, begins=1) for offset in (3, 5)]
    window = WindowFacts(READ_TO_THE_END, ends, OpenTransaction(2, "tx of the old epoch"))
    opened = Frontier(end_position=after(0, 50), epoch=1, streaming=True)
    assert released(release(window, opened)) == [(3, 5)]


@pytest.mark.parametrize(("id_", "reason", "named"), [("", NO_END, None), ("tx", ONLY_BEGUN, 5)])
def test_neither_a_later_end_nor_its_own_implied_one_passes_a_row_without_end(
    id_: str, reason: str, named: int | None
) -> None:
    row = RowWithoutEnd(after(0, 4), "tx")
    contents = Contents((replace(portion(A, Kind.ROW, 9), unended=row),))
    window = facts(end(3), replace(end(5), transaction=id_), end(7))
    decision = release(replace(window, contents=contents))
    assert released(decision) == [(3, 3)]
    assert decision.incomplete == IncompleteTransaction(5, reason, "tx", named_by=named)


def test_the_newest_row_may_wait_for_its_end() -> None:
    row = RowWithoutEnd(after(0, 8), "tx")
    contents = Contents((replace(portion(A, Kind.ROW, 9), unended=row),))
    assert release(replace(THREE, contents=contents)).incomplete is None


def test_an_end_that_overtakes_an_earlier_begun_transaction_waits_for_it() -> None:
    late = EndMarker(7, 4, after(0, 4), begun=2, begins=1)
    decision = release(facts(end(3), end(5), late))
    assert decision.incomplete == IncompleteTransaction(5, NO_END, named_by=7)
    assert released(decision) == [(3, 3)]


def test_ends_behind_one_that_goes_back_to_an_unseen_place_are_not_released() -> None:
    assert released(release(facts(end(3, 9), end(5, 10), end(7, 8)))) == [(3, 5)]


def test_a_transaction_that_an_interrupted_run_has_written_closes_the_first_batch() -> None:
    assert released(release(THREE, bounds=replace(BOUNDS, through=7))) == [(3, 7)]
    assert released(release(THREE, bounds=replace(BOUNDS, through=9))) == []


def test_a_window_gives_a_bounded_number_of_batches() -> None:
    many = facts(*(end(2 * number + 1) for number in range(MAX_BATCHES + 5)))
    decision = release(many, bounds=replace(BOUNDS, batch_transactions=1))
    assert len(decision.cuts) == MAX_BATCHES
    assert decision.ends_read_to is None


def test_nothing_is_released_while_rows_of_the_initial_snapshot_are_under_way() -> None:
    closed = portion(B, Kind.SNAPSHOT, 0, "last_in_data_collection")
    loading = Contents((portion(A, Kind.SNAPSHOT, 0, "first", "true"), closed))
    decision = release(replace(THREE, contents=loading, short=LACKS_A_ROW), Frontier())
    assert (decision.snapshot, decision.cuts, decision.incomplete) == (False, (), None)
    assert decision.waiting == 3
    assert "not published yet" in (decision.awaited or "")


def test_the_initial_snapshot_is_released_with_the_first_whole_transaction() -> None:
    window = replace(THREE, contents=SNAPSHOT, topics=frozenset({A.topic, B.topic, "t.public.c"}))
    decision = release(window, Frontier())
    assert (decision.snapshot, decision.awaited) == (True, None)
    assert released(decision) == [(3, 5), (7, 7)]
    lacking = replace(window, short=replace(LACKS_A_ROW, end_offset=3))
    waits = release(lacking, Frontier())
    assert not waits.snapshot
    assert waits.awaited is not None


def test_end_marks_release_the_initial_snapshot_where_order_proves_it_whole() -> None:
    closed = Contents((portion(A, Kind.SNAPSHOT, 0, "first", "last"),))
    topics = frozenset({A.topic, B.topic})
    assert release(replace(facts(), contents=closed, topics=topics), Frontier()).snapshot
    one_more = replace(facts(), contents=closed, topics=topics | {"t.public.c"})
    assert not release(one_more, Frontier()).snapshot


def test_a_snapshot_that_was_taken_anew_is_taken_only_where_the_settings_say_so() -> None:
    spans = (Stretch(A, "two", 10, 20, snapshot=True),)
    window = replace(THREE, new_snapshot=True, stretches=spans)
    with pytest.raises(DataError, match="a new initial snapshot"):
        decide(window, STREAMING, BOUNDS)
    accepting = replace(BOUNDS, snapshot_again=True)
    assert decide(window, STREAMING, accepting) == Resnapshot(spans)


def test_a_snapshot_that_a_running_connector_took_on_demand_is_none_that_starts_over() -> None:
    on_demand = Verdict(anew=Attempt("one", after(0, 4)), begun_at={A: 10})
    streamed = (Stretch(A, "one", 2, 20, snapshot=True),)
    window = replace(THREE, attempts=on_demand, stretches=streamed)
    assert not window.has_resnapshot
    begun_anew = replace(window, stretches=(Stretch(A, "one", 10, 20, snapshot=True),))
    assert begun_anew.has_resnapshot


FIRST, SECOND = Epoch(0, "server-a"), Epoch(1, "server-b", end_offset=9)


@pytest.mark.parametrize(
    ("epochs", "read_by", "position", "again"),
    [
        ((FIRST,), (FIRST,), after(0, 4), False),
        ((FIRST, SECOND), (FIRST,), after(0, 4), True),
        ((FIRST, SECOND), (), "", True),
        # The first epoch has the positions that were read without it.
        ((FIRST,), (), "", False),
        ((FIRST,), (), after(0, 4), True),
    ],
)
def test_a_window_is_read_again_where_its_epochs_change_positions(
    epochs: tuple[Epoch, ...], read_by: tuple[Epoch, ...], position: str, again: bool
) -> None:
    frontier = Frontier(end_position=position, streaming=True)
    assert replan(epochs, read_by, frontier) == (Replan(epochs) if again else None)


def test_the_likely_batches_are_those_that_are_released_where_nothing_is_missing() -> None:
    assert likely_cuts(THREE, STREAMING, BOUNDS) == release(THREE).cuts
    opened = replace(THREE, opened=OpenTransaction(4, "tx"))
    assert likely_cuts(opened, STREAMING, BOUNDS) == release(opened).cuts


def test_behind_an_initial_snapshot_the_same_batches_are_likely() -> None:
    assert likely_cuts(THREE, Frontier(), BOUNDS) == likely_cuts(THREE, STREAMING, BOUNDS)


def test_no_batch_is_likely_where_rows_may_have_come_twice() -> None:
    assert likely_cuts(facts(end(3, begins=2)), STREAMING, BOUNDS) == ()


def test_where_fewer_batches_are_released_than_were_likely_the_first_are_the_same() -> None:
    bounds = replace(BOUNDS, batch_transactions=1)
    likely = likely_cuts(THREE, STREAMING, bounds)
    assert has_likely_cuts(likely, likely)
    assert has_likely_cuts(likely[:2], likely)
    assert not has_likely_cuts(likely[1:], likely)
    assert not has_likely_cuts(likely, likely[:2])
    assert not has_likely_cuts(likely_cuts(THREE, STREAMING, BOUNDS), likely)
