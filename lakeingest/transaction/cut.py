"""Cut the complete transactions into batches: whole transactions, in commit order, at least one.

Plain Python over the END summaries (offset and count), because a greedy cut is sequential.
Rejected: a running sum in Spark, divided by the batch size. Its batches overshoot by up to one
transaction, or split a transaction that is larger than a batch.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import TypeVar


@dataclass(frozen=True)
class End:
    """Summary of one END.

    Attributes:
        offset: Offset of the END.
        events: Number of rows that it counts.
        position: A position above its rows.
        begun: Offset of the first BEGIN of its transaction; None: an earlier window read it, or it
            is lost.
        transaction: Id of the transaction, as the connector writes it.
        committed_ms: Its time in the source (milliseconds); 0: unknown.
    """

    offset: int
    events: int
    position: str
    begun: int | None = None
    transaction: str = ""
    committed_ms: int = 0


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
    """Return the transactions before the first one that a partition is not read past.

    Args:
        ends: Transactions in commit order.
        passed: Over the partitions that are not read to their high watermark: the lowest of their
            highest positions. None: all partitions are read to it.
    """
    if passed is None:
        return list(ends)
    return list(takewhile(lambda end: end.position <= passed, ends))


def first_later_end(
    ends: Sequence[AnyEnd], begun: int | None = None, row: str | None = None
) -> AnyEnd | None:
    """Return the first END that passes a transaction without END; None: no END does.

    Connectors send one transaction after another. So an END behind the BEGIN of an open
    transaction, or above a row without END, belongs to a later transaction.

    Args:
        ends: Transactions in commit order, none of them released before.
        begun: Offset of the BEGIN of the transaction without END; None: no BEGIN was read.
        row: Position of its first row, to compare with ``End.position``; None: no row was read.
    """
    later_ends = (
        end
        for end in ends
        if (begun is not None and end.offset > begun) or (row is not None and end.position > row)
    )
    return next(later_ends, None)


def first_overtaking(ends: Sequence[AnyEnd]) -> tuple[AnyEnd, AnyEnd] | None:
    """Return an END and the later END that it overtakes; None: no END overtakes another.

    The END has the higher position and stands between the other transaction's BEGIN and END. This
    happens where somebody makes a connector send a transaction again whose END was lost. If a
    transaction begins behind all higher ENDs, the log started over instead.

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
        max_events: Most rows of a batch; a transaction with more is a batch of its own.
        max_transactions: Most transactions of a batch; None: no bound.
        through: Offset of an END that must close the first batch, whatever the bounds. A crashed
            run committed some tables up to this END, so a publication in between is impossible.
    """
    batch: list[End] = []
    events = 0
    for end in ends:
        forced = through is not None and end.offset <= through
        full = bool(batch) and (
            events + end.events > max_events
            or (max_transactions is not None and len(batch) >= max_transactions)
        )
        crossed = bool(batch) and through is not None and batch[-1].offset <= through < end.offset
        if crossed or (full and not forced):
            yield _closed(batch, events)
            batch, events = [], 0
        batch.append(end)
        events += end.events
    if batch:
        yield _closed(batch, events)


def cut_out(ends: Sequence[End], positions: Collection[str]) -> list[Cut]:
    """Return several batches of two or more transactions, instead of the one that they are.

    Args:
        ends: The transactions, in commit order.
        positions: Positions of rows whose transactions are to be alone. If one is empty, it is not
            known which transaction that is, and without a position the batches are halves.
    """
    last = len(ends) - 1
    of_positions = (
        min(bisect_left(ends, position, key=lambda end: end.position), last)
        for position in positions
        if position
    )
    borders = {border for index in of_positions for border in (index, index + 1)}
    inner = sorted(borders - {0, len(ends)}) or [len(ends) // 2]
    parts = (ends[start:stop] for start, stop in pairwise([0, *inner, len(ends)]))
    return [_closed(part, sum(end.events for end in part)) for part in parts]


def _closed(batch: Sequence[End], events: int) -> Cut:
    return Cut(
        first_offset=batch[0].offset,
        last_offset=batch[-1].offset,
        position=max(end.position for end in batch),
        transactions=len(batch),
        events=events,
    )
