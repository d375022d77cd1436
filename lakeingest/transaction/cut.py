"""Cut the complete transactions into batches: whole transactions, in commit order, at least one.

Plain Python over the END summaries (offset and count), because a greedy cut is sequential: the
rejected way, a running sum in Spark divided by the batch size, makes batches that overshoot by up
to one transaction or split one that is larger than a batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TypeVar


@dataclass(frozen=True)
class End:
    """Summary of one END.

    Attributes:
        offset: Its offset.
        events: The rows it counts.
        position: The position above its rows.
        begun: Offset of the first BEGIN of its transaction; None: it was read before, or lost.
    """

    offset: int
    events: int
    position: str
    begun: int | None = None


AnyEnd = TypeVar("AnyEnd", bound=End)


@dataclass(frozen=True)
class Cut:
    """Transactions with ``first_offset <= end_offset <= last_offset``, in one batch."""

    first_offset: int
    last_offset: int
    position: str
    transactions: int
    events: int


def read_past(ends: Sequence[AnyEnd], passed: str | None) -> list[AnyEnd]:
    """Return the transactions before the first one that some partition was not read past.

    Args:
        ends: Transactions in commit order.
        passed: Lowest of the partitions' highest positions among those not read to their high
            watermark; null when all were.
    """
    if passed is None:
        return list(ends)
    return list(takewhile(lambda end: end.position <= passed, ends))


def first_passing(
    ends: Sequence[AnyEnd], begun: int | None = None, row: str | None = None
) -> AnyEnd | None:
    """Return the first END that passes a transaction without one; null: none does.

    Connectors send one transaction after another, so an END behind the BEGIN of an open one, or
    above a row that has no END, is a later transaction's.

    Args:
        ends: Transactions in commit order, none of which was released before.
        begun: Offset of the BEGIN of the transaction without END; null: none was read.
        row: Position of its first row, compared with ``End.position``; null: none was read.
    """
    passing = (
        end
        for end in ends
        if (begun is not None and end.offset > begun) or (row is not None and end.position > row)
    )
    return next(passing, None)


def first_overtaking(ends: Sequence[AnyEnd]) -> tuple[AnyEnd, AnyEnd] | None:
    """Return the first END that passes one written later, with that one; None: none does.

    The connector was made to send a transaction again whose END was lost. One that begins behind
    all higher ENDs is of a log that started over instead.

    Args:
        ends: In the order of their offsets, each transaction once.
    """
    highest = ""
    for late in ends:
        if late.position < highest and late.begun is not None:
            for end in ends:
                if end.offset > late.begun and end.position > late.position:
                    return (end, late) if end.offset < late.offset else None
        highest = max(highest, late.position)
    return None


def cut(
    ends: Sequence[End],
    max_events: int,
    max_transactions: int | None = None,
    through: int | None = None,
) -> Iterator[Cut]:
    """Yield batches of whole transactions.

    Args:
        ends: Complete transactions in commit order.
        max_events: Rows that a batch may hold; a transaction with more is a batch of its own.
        max_transactions: Transactions that a batch may hold, unbounded when null.
        through: Offset of an END that must close the first batch whatever the bounds: a crashed
            run committed some tables up to there, so nothing in between can be published any more.
    """
    taken: list[End] = []
    events = 0
    for end in ends:
        forced = through is not None and end.offset <= through
        full = bool(taken) and (
            events + end.events > max_events
            or (max_transactions is not None and len(taken) >= max_transactions)
        )
        crossed = bool(taken) and through is not None and taken[-1].offset <= through < end.offset
        if crossed or (full and not forced):
            yield _closed(taken, events)
            taken, events = [], 0
        taken.append(end)
        events += end.events
    if taken:
        yield _closed(taken, events)


def _closed(taken: Sequence[End], events: int) -> Cut:
    return Cut(
        taken[0].offset,
        taken[-1].offset,
        max(end.position for end in taken),
        len(taken),
        events,
    )
