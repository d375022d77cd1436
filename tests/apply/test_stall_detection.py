"""What is said of a transaction that lacks rows."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from lakeingest.apply.lake import LakeState
from lakeingest.apply.stall_detection import Patience, is_superseded, refuse_stall
from lakeingest.apply.window.contents import Contents, Portion
from lakeingest.apply.window.incomplete_transaction import NO_END, IncompleteTransaction
from lakeingest.apply.window.offset_ranges import WindowRanges
from lakeingest.apply.window.window import Window
from lakeingest.errors import DataError
from lakeingest.frame_schemas import Kind
from lakeingest.ledger.publication import Publication
from lakeingest.source.contract import TopicPartition
from lakeingest.topic_names import TopicNames
from lakeingest.transaction.completeness import NO_WHOLE_INCARNATION, TOO_FEW_ROWS

NO_FRAME: Any = None
EMPTY = Window(WindowRanges(None, (), frozenset()), Contents(()), NO_FRAME, NO_FRAME, False, "")


def stalled(
    waiting: int,
    *,
    reason: str = "rows are missing",
    static: bool,
    continuous: bool,
    window: Window = EMPTY,
    filtered: Sequence[str] = (),
) -> str:
    """Return what is said of a window that an incomplete transaction blocks."""
    named_by = None if reason == NO_END else 7
    first = IncompleteTransaction(7, reason, "tx", "public.a", named_by=named_by, written_ms=1)
    window = replace(window, waiting=waiting, incomplete=first)
    patience = Patience(0, static=static, continuous=continuous)
    with pytest.raises(DataError) as error:
        refuse_stall(window, patience, TopicNames("shop"), filtered)
    return str(error.value)


@pytest.mark.parametrize(
    ("waiting", "reason", "said"),
    [
        (1, "rows are missing", "It holds back no other;"),
        (2, "rows are missing", "It holds back 1 later transaction;"),
        (4, "rows are missing", "It holds back 3 later transactions;"),
        # Without an END it is not among those that wait.
        (1, NO_END, "It holds back 1 later transaction;"),
    ],
)
def test_the_transactions_behind_an_incomplete_one_are_counted_without_it(
    waiting: int, reason: str, said: str
) -> None:
    assert said in stalled(waiting, reason=reason, static=True, continuous=False)


@pytest.mark.parametrize(
    ("static", "continuous", "remedy"),
    [
        (True, False, "if rows are only late, record the topics again"),
        (False, False, "if rows are only late, run again when they have arrived"),
        (False, True, "if rows are only late, raise lakeingest.transaction.timeout.seconds"),
    ],
)
def test_what_helps_late_rows_depends_on_how_the_run_waits(
    static: bool, continuous: bool, remedy: str
) -> None:
    said = stalled(1, static=static, continuous=continuous)
    assert remedy in said
    assert "transaction.timeout.action=apply-partial publishes it without them" in said


def test_only_a_transaction_whose_end_is_there_is_published_in_part() -> None:
    patience = Patience(0, static=True, continuous=False, stops=False)
    for reason, has_end in ((TOO_FEW_ROWS, True), (NO_WHOLE_INCARNATION, True), (NO_END, False)):
        first = IncompleteTransaction(7, reason, "tx", "public.a")
        window = replace(EMPTY, waiting=1, incomplete=first)
        with nullcontext() if has_end else pytest.raises(DataError):
            assert refuse_stall(window, patience, TopicNames("shop")) is first


def test_rows_that_went_with_a_head_or_cannot_be_read_are_not_taken_for_filtered_ones() -> None:
    where = TopicPartition("shop.public.a", 0)
    headless = replace(EMPTY, ranges=replace(EMPTY.ranges, heads={where: 5}))
    unreadable = Portion(where, "", Kind.MALFORMED, 1, 5, "", 0, frozenset())
    broken = replace(EMPTY, contents=Contents((unreadable,)))
    for window, message in (
        (headless, "The head of the table's topic is missing"),
        (broken, "The record at offset 5 of 'shop.public.a' partition 0 cannot be read"),
    ):
        said = stalled(1, static=True, continuous=False, window=window)
        assert message in said
        assert "filtered.collections" not in said


def test_transactions_in_no_certain_order_are_left_to_a_snapshot_that_may_follow() -> None:
    ledger: Any = SimpleNamespace(unknown_ends=len)
    lake, window = LakeState(Publication(), {}), replace(EMPTY, again=("3",))
    to_be_read_on = replace(window, ranges=replace(EMPTY.ranges, more_ends=True))
    assert is_superseded(to_be_read_on, ledger, lake, replaces=True)
    for read, replaces in ((window, True), (to_be_read_on, False)):
        with pytest.raises(DataError, match="1 transactions lie below"):
            is_superseded(read, ledger, lake, replaces=replaces)


def test_a_filtered_table_that_was_misspelt_is_named() -> None:
    said = stalled(1, static=True, continuous=False, filtered=("public.aa", "public.other"))
    assert "filtered.collections (it names public.aa);" in said
