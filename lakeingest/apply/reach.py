"""Which offset ranges a window reads: all that is there, or a fair share of a backlog.

A backlog is not read to today's watermarks for every batch. Each partition gives the same part of
what waits in it, so that all of them reach about as far in time, and completeness asks of one that
was cut short that a later transaction's row was seen in it (``transaction/cut.py``). A partition
with little waiting is read whole: a part of a handful of rows may reach no time at all. If a window
completes nothing it is read again four times as large: a transaction that is larger than any window
ends up in one.

The rejected way, the same number of records of each, reaches only as far as the busiest partition
does; what the others gave beyond it is read again with the next window.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil

from lakeingest.errors import DataError, UnavailableError
from lakeingest.ledger.publication import Frontier
from lakeingest.source.bounds import check_retained
from lakeingest.source.contract import OffsetRange, Source, TopicPartition, Watermarks
from lakeingest.source.topics import MissingTopicError

GROWTH = 4

_LITTLE = 8
"""A partition is read whole up to an equal share of one in so many of a window's records."""

_ENDS_AHEAD = 1.25
"""The transaction topic is read a little further than the rows, so that no row waits for END."""

_LEAST_ENDS = 1_000
"""Records of the transaction topic that are read at least."""


@dataclass(frozen=True)
class Reach:
    """Ranges of one window.

    Attributes:
        transactions: Range of the transaction topic (null: nothing new there).
        data: Ranges of the data topics.
        cut_short: Partitions of data topics that were not read to their high watermark.
        silent: Data topics that never had a record.
        more_ends: Whether the transaction topic was not read to its high watermark.
        asked: Records that were aimed at.
    """

    transactions: OffsetRange | None
    data: tuple[OffsetRange, ...]
    cut_short: frozenset[TopicPartition]
    silent: frozenset[str] = frozenset()
    more_ends: bool = False
    asked: int = 0

    @property
    def nothing(self) -> bool:
        """Whether there is no record to read."""
        return self.transactions is None and not self.data

    @property
    def all(self) -> tuple[OffsetRange, ...]:
        """All ranges."""
        return (*((self.transactions,) if self.transactions else ()), *self.data)

    @property
    def edges(self) -> tuple[tuple[OffsetRange, ...], tuple[OffsetRange, ...]]:
        """The first record of every range; the last one of every range."""
        first = tuple(replace(part, end=part.start + 1) for part in self.all)
        last = tuple(replace(part, start=part.end - 1) for part in self.all)
        return first, last

    @property
    def whole(self) -> bool:
        """Whether everything that was there is in the window."""
        return not self.cut_short and not self.more_ends


def plan_reach(
    source: Source, transaction_topic: str | None, frontier: Frontier, max_records: int
) -> Reach:
    """Fix the ranges of a window.

    The transaction topic's watermark is taken first: the data topics' watermarks are then later
    than every END in the window, which is what completeness relies on.

    Args:
        source: What is read.
        transaction_topic: Null where each event is on its own.
        frontier: Up to where everything is applied.
        max_records: Of data topics, as many as the window aims at.

    Raises:
        DataError: The transaction topic has several partitions, or retention removed records that
            were not applied yet.
        UnavailableError: A topic is not there.
    """
    ends = None if transaction_topic is None else _ends_waiting(source, transaction_topic, frontier)
    marks = source.watermarks(source.topics())
    starts = {
        place: _start(place, found, frontier.low(place.topic, place.partition))
        for place, found in marks.items()
    }
    waiting = {place: marks[place].high - starts[place] for place in marks}
    granted = _shares(waiting, max_records)
    data = tuple(
        OffsetRange(place.topic, place.partition, starts[place], starts[place] + granted[place])
        for place in sorted(granted)
        if granted[place] > 0
    )
    cut_short = frozenset(place for place in waiting if granted[place] < waiting[place])
    heard = {place.topic for place, found in marks.items() if found.high > 0}
    silent = frozenset(place.topic for place in marks) - heard
    if ends is None:
        return Reach(None, data, cut_short, silent, asked=max_records)
    stop = ends.start + _ends(ends.end - ends.start, max_records, sum(waiting.values()))
    transactions = replace(ends, end=stop) if stop > ends.start else None
    return Reach(transactions, data, cut_short, silent, stop < ends.end, max_records)


def _ends_waiting(source: Source, topic: str, frontier: Frontier) -> OffsetRange:
    """Return what was not looked at of the transaction topic; may be empty."""
    ends = _ends_marks(source, topic)
    if len(ends) != 1:
        message = (
            f"The transaction topic '{topic}' has {len(ends)} partitions; the commit "
            "order is lost with more than one. Create it anew with one partition (Connect: a "
            "topic.creation group for it) and let the connector start over."
        )
        raise DataError(message)
    (where, known), *_ = ends.items()
    start = _start(where, known, frontier.end_offset + 1 if frontier.end_offset >= 0 else None)
    return OffsetRange(where.topic, where.partition, start, known.high)


def _ends_marks(source: Source, topic: str) -> Mapping[TopicPartition, Watermarks]:
    try:
        return source.watermarks([topic])
    except MissingTopicError as error:
        message = (
            f"{error} It is the transaction topic, which says what belongs together; nothing is "
            "applied without it (a Hudi Streamer needed none). Set "
            "provide.transaction.metadata=true in the connector, or name the topic by "
            "lakeingest.transaction.topic; lakeingest.transaction.mode=none does without it, and "
            "without whole transactions."
        )
        raise UnavailableError(message) from error


def _start(where: TopicPartition, marks: Watermarks, low: int | None) -> int:
    if low is None:
        return marks.earliest
    check_retained([OffsetRange(where.topic, where.partition, low, low)], {where: marks})
    return low


def _shares(waiting: Mapping[TopicPartition, int], max_records: int) -> dict[TopicPartition, int]:
    """Return how many records of each partition are read."""
    total = sum(waiting.values())
    if total <= max_records:
        return dict(waiting)
    little = max(1, max_records // (_LITTLE * len(waiting)))
    return {
        place: min(count, max(little, count * max_records // total))
        for place, count in waiting.items()
    }


def _ends(waiting: int, max_records: int, data: int) -> int:
    """Return how many records of the transaction topic are read with ``max_records`` of ``data``.

    At most two for each row: a BEGIN and an END.
    """
    part = min(1.0, _ENDS_AHEAD * max_records / max(1, data))
    return min(waiting, 2 * max_records + 2, max(_LEAST_ENDS, ceil(waiting * part)))
