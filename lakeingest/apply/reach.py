"""Which offset ranges a window reads: all that is there, or a fair share of a backlog.

A backlog is not read to today's watermarks for every batch. Each partition gets an equal share of
the window (what one does not need goes to the others), and completeness asks of a partition that
was cut short that a later transaction's row was seen in it (``transaction/completeness.py``). If a
window completes nothing it is read again four times as large: a transaction that is larger than any
window ends up in one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakeingest.errors import DataError
from lakeingest.ledger.publication import Frontier
from lakeingest.source.bounds import check_retained
from lakeingest.source.contract import OffsetRange, Source, TopicPartition, Watermarks

GROWTH = 4


@dataclass(frozen=True)
class Reach:
    """Ranges of one window.

    Attributes:
        transactions: Range of the transaction topic (null: nothing new there).
        data: Ranges of the data topics.
        cut_short: Partitions that were not read to their high watermark.
        silent: Data topics that never had a record.
    """

    transactions: OffsetRange | None
    data: tuple[OffsetRange, ...]
    cut_short: frozenset[TopicPartition]
    silent: frozenset[str] = frozenset()

    @property
    def nothing(self) -> bool:
        """Whether there is no record to read."""
        return self.transactions is None and not self.data

    @property
    def whole(self) -> bool:
        """Whether everything that was there is in the window."""
        return not self.cut_short


def plan_reach(
    source: Source, transaction_topic: str, frontier: Frontier, max_records: int
) -> Reach:
    """Fix the ranges of a window.

    The transaction topic's watermark is taken first: the data topics' watermarks are then later
    than every END in the window, which is what completeness relies on.

    Raises:
        DataError: The transaction topic has several partitions, or retention removed records that
            were not applied yet.
    """
    ends = source.watermarks([transaction_topic])
    if len(ends) != 1:
        message = (
            f"The transaction topic '{transaction_topic}' has {len(ends)} partitions; the commit "
            "order is lost with more than one. Create it anew with one partition (Connect: a "
            "topic.creation group for it) and let the connector start over."
        )
        raise DataError(message)
    (where, known), *_ = ends.items()
    start = _start(where, known, frontier.end_offset + 1 if frontier.end_offset >= 0 else None)
    stop = min(known.high, start + 2 * max_records + 2)
    transactions = OffsetRange(where.topic, where.partition, start, stop) if stop > start else None
    marks = source.watermarks(source.topics())
    data, cut_short = _shares(marks, frontier, max_records)
    if stop < known.high:
        cut_short = cut_short | {where}
    heard = {place.topic for place, found in marks.items() if found.high > 0}
    silent = frozenset(place.topic for place in marks) - heard
    return Reach(transactions, data, cut_short, silent)


def _start(where: TopicPartition, marks: Watermarks, low: int | None) -> int:
    if low is None:
        return marks.earliest
    check_retained([OffsetRange(where.topic, where.partition, low, low)], {where: marks})
    return low


def _shares(
    marks: Mapping[TopicPartition, Watermarks], frontier: Frontier, max_records: int
) -> tuple[tuple[OffsetRange, ...], frozenset[TopicPartition]]:
    starts = {
        where: _start(where, bounds, frontier.low(where.topic, where.partition))
        for where, bounds in marks.items()
    }
    by_size: Sequence[TopicPartition] = sorted(
        starts, key=lambda where: marks[where].high - starts[where]
    )
    left = max_records
    ranges, cut_short = [], set()
    for index, where in enumerate(by_size):
        wanted = marks[where].high - starts[where]
        granted = min(wanted, max(1, left // (len(by_size) - index)))
        left -= granted
        if granted < wanted:
            cut_short.add(where)
        if granted > 0:
            start = starts[where]
            ranges.append(OffsetRange(where.topic, where.partition, start, start + granted))
    return tuple(ranges), frozenset(cut_short)
