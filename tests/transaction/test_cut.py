"""Cutting complete transactions into batches: pure, so hypothesis may try hundreds of cuts."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeingest.position import after
from lakeingest.transaction.cut import (
    Cut,
    End,
    cut,
    cut_out,
    first_later_end,
    first_overtaking,
    read_past,
)

ENDS = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 12)), max_size=40).map(
    lambda steps: [
        End(offset, events, after(0, offset))
        for offset, (_, events) in zip(
            itertools.accumulate(gap for gap, _ in steps), steps, strict=True
        )
    ]
)
EVENTS = st.integers(1, 25)
TRANSACTIONS = st.none() | st.integers(1, 5)
THROUGH = st.none() | st.integers(0, 90)
PASSED = st.integers(0, 90).map(lambda offset: after(0, offset))


def inside(ends: list[End], batch: Cut) -> list[End]:
    return [end for end in ends if batch.first_offset <= end.offset <= batch.last_offset]


@given(ENDS, EVENTS, TRANSACTIONS, THROUGH)
def test_every_transaction_is_in_exactly_one_batch_and_the_order_is_kept(
    ends: list[End], events: int, transactions: int | None, through: int | None
) -> None:
    batches = list(cut(ends, events, transactions, through))
    assert [end for batch in batches for end in inside(ends, batch)] == ends
    for batch in batches:
        members = inside(ends, batch)
        assert (batch.first_offset, batch.last_offset) == (members[0].offset, members[-1].offset)
        assert batch.transactions == len(members) >= 1
        assert batch.events == sum(end.events for end in members)
        assert batch.position == max(end.position for end in members)


@given(ENDS, EVENTS, TRANSACTIONS)
def test_a_batch_keeps_the_bounds_unless_it_is_one_transaction(
    ends: list[End], events: int, transactions: int | None
) -> None:
    for batch in cut(ends, events, transactions):
        assert batch.events <= events or batch.transactions == 1
        assert transactions is None or batch.transactions <= transactions


@given(ENDS, EVENTS, TRANSACTIONS)
def test_no_batch_could_have_taken_the_next_transaction(
    ends: list[End], events: int, transactions: int | None
) -> None:
    for batch, following in itertools.pairwise(cut(ends, events, transactions)):
        first = inside(ends, following)[0]
        full = batch.events + first.events > events
        assert full or batch.transactions == transactions


@given(ENDS, EVENTS, TRANSACTIONS, st.integers(0, 90))
def test_the_first_batch_ends_exactly_where_a_crashed_run_had_committed(
    ends: list[End], events: int, transactions: int | None, through: int
) -> None:
    batches = list(cut(ends, events, transactions, through))
    forced = [end for end in ends if end.offset <= through]
    if forced:
        assert inside(ends, batches[0]) == forced
        rest = [end for end in ends if end.offset > through]
        assert batches[1:] == list(cut(rest, events, transactions))
    else:
        assert batches == list(cut(ends, events, transactions))


def test_a_transaction_larger_than_a_batch_is_a_batch_of_its_own() -> None:
    ends = [End(n, events, after(0, n)) for n, events in enumerate((2, 100, 2, 2))]
    assert [batch.transactions for batch in cut(ends, 4)] == [1, 1, 2]


def test_nothing_gives_no_batch() -> None:
    assert list(cut([], 10)) == []


@given(ENDS, st.none() | st.integers(0, 90), st.none() | PASSED)
def test_what_ended_before_a_transaction_without_end_passes_none(
    ends: list[End], begun: int | None, row: str | None
) -> None:
    later_end = first_later_end(ends, begun, row)
    before = ends[: ends.index(later_end)] if later_end else ends
    assert all(begun is None or end.offset <= begun for end in before)
    assert all(row is None or end.position <= row for end in before)
    if later_end:
        behind_begin = begun is not None and later_end.offset > begun
        assert behind_begin or (row is not None and later_end.position > row)


OVERTAKING: dict[str, tuple[list[tuple[int, int, int | None]], tuple[int, int] | None]] = {
    "one after another": ([(1, 10, 0), (3, 20, 2)], None),
    "an END that was lost is sent again": ([(1, 10, 0), (4, 30, 3), (6, 20, 2)], (4, 6)),
    "the log starts over": ([(1, 10, 0), (3, 30, 2), (5, 20, 4)], None),
    "the connector went back": ([(2, 50, 1), (4, 60, 3), (6, 70, 0)], None),
    "its BEGIN was read before": ([(1, 30, 0), (2, 20, None)], None),
}
"""Offset, place and offset of BEGIN of each END; which END passes which."""


@pytest.mark.parametrize("name", OVERTAKING)
def test_an_end_passes_a_transaction_that_began_before_it_and_ends_behind(name: str) -> None:
    placed, expected = OVERTAKING[name]
    ends = [End(offset, 1, after(0, number), begun) for offset, number, begun in placed]
    pair = first_overtaking(ends)
    assert (pair and (pair[0].offset, pair[1].offset)) == expected


@given(ENDS, PASSED)
def test_transactions_wait_from_the_first_that_some_partition_was_not_read_past(
    ends: list[End], passed: str
) -> None:
    taken = read_past(ends, passed)
    assert taken == ends[: len(taken)]
    assert all(end.position <= passed for end in taken)
    assert ends[len(taken) :][:1] == [end for end in ends if end.position > passed][:1]


@given(ENDS)
def test_no_transaction_waits_where_every_partition_was_read_to_its_watermark(
    ends: list[End],
) -> None:
    assert read_past(ends, None) == ends
    assert read_past(ends, "") == []


@given(ENDS.filter(lambda ends: len(ends) > 1), st.data())
def test_cut_out_transactions_are_alone_and_no_other_transaction_is_lost(
    ends: list[End], data: st.DataObject
) -> None:
    alone = data.draw(st.lists(st.sampled_from(ends), min_size=1, max_size=3))
    batches = cut_out(ends, [end.position for end in alone])
    assert [end for batch in batches for end in inside(ends, batch)] == ends
    assert len(batches) > 1
    assert all([end] in [inside(ends, batch) for batch in batches] for end in alone)
    assert len(batches) <= 2 * len(alone) + 1


@given(ENDS.filter(lambda ends: len(ends) > 1))
def test_where_it_is_unknown_which_transaction_to_cut_out_there_are_two_halves(
    ends: list[End],
) -> None:
    first, second = cut_out(ends, [""])
    assert [*inside(ends, first), *inside(ends, second)] == ends
    assert second.transactions - first.transactions in (0, 1)
