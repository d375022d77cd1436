"""Cutting complete transactions into batches: pure, so hypothesis may try hundreds of cuts."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from lakeingest.position import after
from lakeingest.transaction.cut import Cut, End, cut, read_past

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
        held = inside(ends, batch)
        assert (batch.first_offset, batch.last_offset) == (held[0].offset, held[-1].offset)
        assert batch.transactions == len(held) >= 1
        assert batch.events == sum(end.events for end in held)
        assert batch.position == max(end.position for end in held)


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
    batches = list(cut(ends, events, transactions))
    for batch, following in itertools.pairwise(batches):
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
