"""An initial snapshot that was killed and begun anew: only the last attempt counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakeingest.apply.window.contents import Attempt, Contents, Portion
from lakeingest.apply.window.initial_snapshot import new_snapshots
from lakeingest.apply.window.next_frontier import frontier_after
from lakeingest.apply.window.resnapshot_cut_over import Stretch
from lakeingest.apply.window.snapshot_attempts import (
    Verdict,
    judge_attempts,
    late_attempts,
    superseded_below,
)
from lakeingest.errors import DataError
from lakeingest.frame_schemas import Kind
from lakeingest.ledger.publication import Frontier
from lakeingest.plan.batches import SNAPSHOT_BATCH
from lakeingest.source.contract import TopicPartition
from tests.apply.test_stall_detection import EMPTY

ONE, TWO = Attempt("one", "00000A"), Attempt("two", "00000B")
OLD_ONE, OLD_TWO = Attempt(None, "00000A"), Attempt(None, "00000B")
ONE_MORE = Attempt("before", "000009")
"""An attempt that no window held before."""

WHOLE = ("first", "last_in_data_collection", "last")


def where(table: str, partition: int = 0) -> TopicPartition:
    return TopicPartition(f"t.public.{table}", partition)


def rows(
    attempt: Attempt,
    table: str,
    first: int,
    last: int,
    *marks: str,
    partition: int = 0,
    ms: int = 5,
) -> Portion:
    return Portion(
        where(table, partition),
        f"public.{table}",
        Kind.SNAPSHOT,
        last - first + 1,
        first,
        "",
        ms,
        frozenset(marks),
        last_offset=last,
        first_ms=ms,
        firsts=int("first" in marks),
        attempt=attempt,
    )


def streamed(table: str, first: int, ms: int) -> Portion:
    return Portion(
        where(table), f"public.{table}", Kind.ROW, 1, first, "", ms, frozenset(), first_ms=ms
    )


def verdict(*portions: Portion) -> Verdict:
    return judge_attempts(Contents(portions))


def test_a_killed_attempt_is_replaced_by_the_one_after_it() -> None:
    killed = rows(ONE, "a", 0, 4, "first", "true"), rows(ONE, "b", 0, 1, "true")
    judgement = verdict(*killed, rows(TWO, "a", 5, 9, *WHOLE))
    assert judgement.superseded == {ONE}
    left = Contents((*killed, rows(TWO, "a", 5, 9, *WHOLE))).without(judgement.superseded)
    assert [portion.first_offset for portion in left.portions] == [5]


def left(*attempts: Attempt, newest: Attempt = TWO) -> Contents:
    return Contents((rows(newest, "a", 5, 9, *WHOLE),), superseded=frozenset(attempts))


def test_what_a_killed_run_wrote_of_a_replaced_attempt_is_swept() -> None:
    old, new = ONE.place + "7", TWO.place + "3"
    floor = superseded_below(left(ONE), "public.a", old)
    assert old < floor < TWO.place
    # It may hold streamed rows of the newest attempt, and those of the one before below them.
    assert superseded_below(left(ONE), "public.a", new) == floor
    # Its topics were deleted and made anew.
    assert old < superseded_below(left(), "public.a", old) < TWO.place
    assert superseded_below(left(), "public.a", new) == ""
    assert superseded_below(left(Attempt("one", TWO.place)), "public.a", new) == ""


def test_what_positions_do_not_tell_of_a_killed_run_is_refused() -> None:
    higher = left(TWO, newest=ONE)
    nowhere = left(Attempt("one", ""), newest=Attempt("two", ""))
    for contents in (higher, nowhere):
        with pytest.raises(DataError, match=r"Delete the folder of table 'public\.a'"):
            superseded_below(contents, "public.a", TWO.place)


def test_end_marks_of_the_replaced_attempt_do_not_end_the_later_one() -> None:
    both = Contents((rows(ONE, "a", 0, 4, *WHOLE), rows(TWO, "a", 5, 6, "first")))
    assert not both.without(judge_attempts(both).superseded).snapshot_marked_complete()


def test_offsets_and_not_positions_say_which_attempt_is_later() -> None:
    # The server was restored in between: its log starts lower.
    assert verdict(rows(TWO, "a", 0, 4, "first"), rows(ONE, "a", 5, 9, *WHOLE)).superseded == {TWO}


def test_attempts_at_one_place_of_the_log_are_told_apart_by_their_runs() -> None:
    same = Attempt("two", ONE.place)
    assert verdict(rows(ONE, "a", 0, 4, "first"), rows(same, "a", 5, 9, *WHOLE)).superseded == {ONE}


def test_attempts_without_runs_are_told_apart_by_first_marks_at_two_places() -> None:
    judgement = verdict(rows(OLD_ONE, "a", 0, 4, "first"), rows(OLD_TWO, "a", 5, 9, *WHOLE))
    assert judgement.superseded == {OLD_ONE}


def test_rows_at_places_of_their_own_are_one_attempt() -> None:
    apart = rows(OLD_ONE, "a", 0, 4, "true"), rows(OLD_TWO, "a", 5, 9, "true")
    assert not verdict(*apart).superseded


def test_a_snapshot_of_other_tables_by_the_same_or_another_run_replaces_nothing() -> None:
    later = Attempt("one", TWO.place)
    whole = rows(ONE, "a", 0, 4, *WHOLE)
    assert not verdict(whole, rows(later, "a", 5, 9, *WHOLE)).superseded
    assert not verdict(whole, rows(TWO, "b", 0, 4, *WHOLE)).superseded


def test_attempts_whose_order_nothing_tells_stop_the_run() -> None:
    with pytest.raises(DataError, match="cannot be told"):
        verdict(rows(ONE, "a", 0, 6, "first"), rows(TWO, "a", 3, 9, *WHOLE))
    with pytest.raises(DataError, match="cannot be told"):
        verdict(rows(ONE, "a", 0, 6, "first"), rows(Attempt("two", ONE.place), "b", 3, 9, "last"))


def test_a_third_attempt_settles_what_the_order_of_the_first_two_does_not() -> None:
    alternate = rows(ONE, "a", 0, 6, "first"), rows(TWO, "a", 3, 9, "first")
    three = rows(Attempt("three", "00000C"), "a", 10, 12, *WHOLE)
    assert verdict(*alternate, three).superseded == {ONE, TWO}


def test_two_first_rows_at_one_place_without_runs_stop_the_run() -> None:
    with pytest.raises(DataError, match="no runId"):
        verdict(rows(OLD_ONE, "a", 0, 4, "first"), rows(OLD_ONE, "a", 5, 9, "first", partition=1))


def test_a_later_whole_snapshot_that_lacks_a_table_of_the_earlier_one_stops_the_run() -> None:
    first = rows(ONE, "a", 0, 4, "first", "last_in_data_collection"), rows(ONE, "b", 0, 4, "last")
    two = *first, rows(TWO, "a", 5, 9, *WHOLE)
    with pytest.raises(DataError, match=r"public\.b .*may be empty by now"):
        verdict(*two)
    with pytest.raises(DataError, match=r"public\.b .*batch\.max\.events"):
        judge_attempts(Contents(two), read_past=False)


def test_a_snapshot_after_streamed_changes_is_one_taken_anew() -> None:
    log = rows(ONE, "a", 0, 4, *WHOLE), streamed("a", 5, 6), rows(TWO, "a", 6, 9, *WHOLE, ms=9)
    judgement = verdict(*log)
    assert (judgement.superseded, judgement.anew) == (frozenset(), TWO)
    assert not judgement.streamed_first([Stretch(where("a"), "two", 6, 9, snapshot=True)])
    assert judgement.streamed_first([Stretch(where("a"), "two", 5, 9, snapshot=True)])


def test_a_lone_snapshot_behind_what_an_earlier_connector_streamed_is_one_taken_anew() -> None:
    judgement = verdict(streamed("a", 0, 3), rows(TWO, "a", 1, 4, *WHOLE, ms=9))
    assert (judgement.superseded, judgement.anew) == (frozenset(), TWO)
    assert not judgement.streamed_first([Stretch(where("a"), "two", 1, 4, snapshot=True)])
    assert verdict(rows(TWO, "a", 0, 4, *WHOLE), streamed("a", 5, 3)) == Verdict()


def test_a_snapshot_after_streamed_changes_without_a_run_is_one_taken_anew_too() -> None:
    later = rows(OLD_TWO, "a", 6, 9, *WHOLE, ms=9)
    for earlier in (ONE, OLD_ONE):
        judgement = verdict(rows(earlier, "a", 0, 4, *WHOLE), streamed("a", 5, 6), later)
        assert judgement.anew == OLD_TWO
        # The rows of the connector before have no run either: they do not show one that went on.
        assert not judgement.streamed_first([Stretch(where("a"), None, 0, 9, snapshot=True)])


def test_rows_of_a_replaced_attempt_that_come_after_the_snapshot_are_left_out() -> None:
    late = Contents((rows(ONE, "a", 3, 4, "true"),))
    applied = Frontier(streaming=True, committed_ms=7, snapshot_run="two", snapshot_place=TWO.place)
    assert late_attempts(late, applied) == {ONE}
    assert not late_attempts(Contents((rows(TWO, "a", 3, 4, "true"),)), applied)
    assert not new_snapshots(late, applied)


@pytest.mark.parametrize(("one", "two"), [(ONE, TWO), (OLD_ONE, OLD_TWO)])
def test_an_earlier_snapshot_that_counts_still_does_when_it_is_read_again(
    one: Attempt, two: Attempt
) -> None:
    log = rows(one, "a", 0, 4, *WHOLE), streamed("a", 5, 6), rows(two, "c", 0, 4, *WHOLE, ms=9)
    first = Contents(log)
    assert judge_attempts(first) == Verdict(begun_at={where("c"): 0})
    window = replace(EMPTY, contents=first, snapshot=True)
    applied = replace(frontier_after(window, SNAPSHOT_BATCH, Frontier()), committed_ms=7)
    assert (applied.snapshot_run, applied.snapshot_place) == (two.run, two.place)
    again = Contents((rows(one, "a", 0, 4, *WHOLE), rows(ONE_MORE, "a", 0, 4, *WHOLE)))
    assert late_attempts(again, applied) == {ONE_MORE}


def test_a_later_runs_snapshot_is_a_new_one_whatever_the_clocks_say() -> None:
    applied = Frontier(streaming=True, committed_ms=7, snapshot_run="one", snapshot_place=ONE.place)
    assert new_snapshots(Contents((rows(TWO, "a", 5, 9, *WHOLE),)), applied)
    assert not new_snapshots(Contents((rows(ONE, "a", 5, 9, "true"),)), applied)


def test_late_rows_of_the_snapshot_in_the_lake_are_no_new_one_however_young() -> None:
    applied = Frontier(streaming=True, committed_ms=7, snapshot_run="one", snapshot_place=ONE.place)
    assert not new_snapshots(Contents((rows(ONE, "a", 5, 9, "true", ms=9),)), applied)
    unnamed = replace(applied, snapshot_run=None)
    assert not new_snapshots(Contents((rows(OLD_ONE, "a", 5, 9, "true", ms=9),)), unnamed)
    assert new_snapshots(Contents((rows(OLD_TWO, "a", 5, 9, "true", ms=9),)), unnamed)
    # With ordering columns a snapshot has no place, either, so nothing tells.
    unplaced = replace(unnamed, snapshot_place="")
    assert new_snapshots(Contents((rows(Attempt(), "a", 5, 9, "true", ms=9),)), unplaced)


def test_another_snapshot_right_behind_the_one_in_the_lake_is_a_new_one() -> None:
    applied = Frontier(streaming=True, snapshot_run="one", snapshot_place=ONE.place)
    assert new_snapshots(Contents((rows(TWO, "a", 5, 9, *WHOLE),)), applied)
    assert not new_snapshots(Contents((rows(ONE, "a", 5, 9, "true"),)), applied)
