"""Plan which offset ranges a window reads: everything available, or a fair part of a backlog.

A backlog is not read to today's watermarks for every batch. Each partition gives the same part of
its waiting records, so that all partitions end at about the same time. Where a partition was cut
short, completeness requires a row of a later transaction from it (``transaction/cut.py``). A
partition with few waiting records is read whole: a part of a handful of rows may cover no time at
all. If a window completes nothing, it is read again, larger where it has to be (``size.py``).

Rejected: the same number of records from each partition. That ends where the busiest partition
ends; everything that the others gave beyond it is read again with the next window.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import ceil

from lakeingest.apply.window.continuity import LogRules, continuation, log_rules
from lakeingest.config.model import PipelineConfig
from lakeingest.errors import DataError, UnavailableError
from lakeingest.ledger.publication import Frontier
from lakeingest.source.contract import OffsetRange, Source, TopicPartition, Watermarks
from lakeingest.source.topics import MissingTopicError

GROWTH = 4

EVERYTHING = 2**62
"""As the target number of records: whatever there is."""

_LITTLE = 8
"""A partition is read whole up to ``max_records / (_LITTLE * partitions)`` records."""

_ENDS_AHEAD = 1.25
"""Factor by which the transaction topic is read further than the rows: no row waits for END."""

_LEAST_ENDS = 1_000
"""Least number of records of the transaction topic to read."""


@dataclass(frozen=True)
class Limits:
    """Bounds of a window besides the number of its records.

    Attributes:
        octets: Target for the bytes of the data topics' records; None: any number.
        sizes: Bytes of a record, by partition, as far as they are known.
        further: Least number of records to read, by partition.
        ends: Greatest number of records of the transaction topic to read; None: any number.
        until: Offset up to which a partition is read (``ends_of_now``); if it has none, the window
            may read it to its high watermark.
    """

    octets: int | None = None
    sizes: Mapping[TopicPartition, float] = field(default_factory=dict)
    further: Mapping[TopicPartition, int] = field(default_factory=dict)
    ends: int | None = None
    until: Mapping[TopicPartition, int] = field(default_factory=dict)


@dataclass(frozen=True)
class WindowRanges:
    """Ranges of one window.

    Attributes:
        transactions: Range of the transaction topic (None: nothing new there).
        data: Ranges of the data topics.
        cut_short: Partitions of data topics that were not read to their high watermark.
        silent: Data topics that never had a record.
        unordered: Data topics whose records may lie in more than one partition.
        heads: First offsets of data partitions whose first reading does not begin at 0.
        ends_head: First offset of the transaction topic in that case; -1: it begins at 0, or was
            read before.
        remade: See ``Continuation``.
        topic_ids: See ``Continuation``.
        accepted: Deviations of the log that were accepted, as warnings.
        more_ends: Whether the transaction topic was not read to its high watermark.
        target: Target number of records.
    """

    transactions: OffsetRange | None
    data: tuple[OffsetRange, ...]
    cut_short: frozenset[TopicPartition]
    silent: frozenset[str] = frozenset()
    more_ends: bool = False
    target: int = 0
    unordered: frozenset[str] = frozenset()
    heads: Mapping[TopicPartition, int] = field(default_factory=dict)
    ends_head: int = -1
    remade: frozenset[str] = frozenset()
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    accepted: tuple[str, ...] = ()

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

    def behind(self, old: Frontier) -> dict[str, dict[int, int]]:
        """Return the offsets of a frontier, moved behind the ranges.

        A missing head that was accepted is stored, too: it does not count as missing the next time,
        even where no record follows it. Of a topic that was made again no old offset counts.
        """
        topics = old.offsets.keys() - self.remade
        offsets = {topic: dict(parts) for topic, parts in old.offsets.items() if topic in topics}
        for place, start in self.heads.items():
            offsets.setdefault(place.topic, {}).setdefault(place.partition, start)
        for part in self.data:
            offsets.setdefault(part.topic, {})[part.partition] = part.end
        return offsets

    @property
    def records(self) -> int:
        """Number of offsets of data topics."""
        return sum(part.end - part.start for part in self.data)

    @property
    def whole(self) -> bool:
        """Whether everything that was there is in the window."""
        return not self.cut_short and not self.more_ends


def plan_window_ranges(
    source: Source,
    transaction_topic: str | None,
    frontier: Frontier,
    max_records: int,
    limits: Limits | None = None,
    rules: LogRules | None = None,
) -> WindowRanges:
    """Fix the ranges of a window.

    The transaction topic's watermark is read first: the data topics' watermarks are then later than
    every END in the window. Completeness relies on that.

    Args:
        source: The source to read.
        transaction_topic: None where each event is on its own.
        frontier: Up to where everything is applied.
        max_records: Target number of records of data topics.
        limits: Further bounds.
        rules: Deviations of the log that the pipeline accepts; None: it accepts none.

    Raises:
        DataError: The transaction topic has several partitions, or see ``continuation``.
        UnavailableError: A topic does not exist.
        AccessError: A topic may not be described.
    """
    ends_marks = {} if transaction_topic is None else _ends_marks(source, transaction_topic)
    topics = source.topics()
    marks = source.watermarks(topics)
    marks = {**marks, **_unlisted(source, {*topics}, frontier, rules or LogRules())}
    log = continuation({**ends_marks, **marks}, frontier, transaction_topic, rules or LogRules())
    starts = log.starts
    limits = limits or Limits()

    def stop_of(place: TopicPartition, bounds: Watermarks) -> int:
        # Another run may have read further.
        return max(starts[place], min(bounds.high, limits.until.get(place, bounds.high)))

    ends, ends_head = None, -1
    for place, bounds in ends_marks.items():
        ends = OffsetRange(place.topic, place.partition, starts[place], stop_of(place, bounds))
        ends_head = log.heads.get(place, -1)
    waiting = {place: stop_of(place, bounds) - starts[place] for place, bounds in marks.items()}
    target = _within_bytes(waiting, max_records, limits)
    counts = {
        place: min(waiting[place], max(number, limits.further.get(place, 0)))
        for place, number in _portions(waiting, target).items()
    }
    data = tuple(
        OffsetRange(place.topic, place.partition, starts[place], starts[place] + counts[place])
        for place in sorted(counts)
        if counts[place] > 0
    )
    cut_short = frozenset(place for place in waiting if counts[place] < waiting[place])
    with_records = {place.topic for place, bounds in marks.items() if bounds.high > 0}
    silent = frozenset(place.topic for place in marks) - with_records
    unordered = frozenset(
        place.topic for place, bounds in marks.items() if place.partition or bounds.observed
    )
    ranges = WindowRanges(
        None,
        data,
        cut_short,
        silent,
        target=max_records,
        unordered=unordered,
        heads={place: head for place, head in log.heads.items() if place in marks},
        ends_head=ends_head,
        remade=log.remade,
        topic_ids=log.topic_ids,
        accepted=log.warnings,
    )
    if ends is None:
        return ranges
    stop = ends.start + _ends(ends.end - ends.start, target, sum(waiting.values()), limits.ends)
    transactions = replace(ends, end=stop) if stop > ends.start else None
    return replace(ranges, transactions=transactions, more_ends=stop < ends.end)


def ends_of_now(source: Source, transaction_topic: str | None) -> Mapping[TopicPartition, int]:
    """Return where a run ends that releases what is committed now, and nothing of later.

    The transaction topic alone ends there: its transactions need all rows up to later watermarks.

    Args:
        source: The source to read.
        transaction_topic: None: there is none, and the data topics end there.
    """
    topics = source.topics() if transaction_topic is None else (transaction_topic,)
    with suppress(MissingTopicError):  # Whoever plans a window says what to do.
        return {place: bounds.high for place, bounds in source.watermarks(topics).items()}
    return {}


def plan_all_ranges(source: Source, config: PipelineConfig, frontier: Frontier) -> WindowRanges:
    """Fix the ranges of everything that is available; see ``plan_window_ranges``.

    Args:
        source: The source to read.
        config: The pipeline that reads it.
        frontier: Up to where everything is applied.
    """
    return plan_window_ranges(
        source, config.source.ends_topic, frontier, EVERYTHING, rules=log_rules(config)
    )


def _unlisted(
    source: Source, listed: Set[str], frontier: Frontier, rules: LogRules
) -> dict[TopicPartition, Watermarks]:
    """Return the bounds of topics that were read before and exist, but are not listed.

    A broker omits from its list the topics that the user may not describe (any more). If a topic is
    requested by name, the broker says so. It calls a topic missing only if the user may describe
    it.

    Raises:
        AccessError: A topic may not be described.
    """
    bounds: dict[TopicPartition, Watermarks] = {}
    for topic in sorted((frontier.offsets.keys() | rules.rewound.keys()) - listed):
        if rules.names.reads_topic(topic):
            with suppress(MissingTopicError):
                bounds.update(source.watermarks([topic]))
    return bounds


def _ends_marks(source: Source, topic: str) -> Mapping[TopicPartition, Watermarks]:
    """Return the bounds of the transaction topic's one partition."""
    ends = _existing_marks(source, topic)
    if len(ends) != 1:
        message = (
            f"The transaction topic '{topic}' has {len(ends)} partitions; the commit "
            "order is lost with more than one. Create it anew with one partition (Connect: a "
            "topic.creation group for it) and let the connector start over."
        )
        raise DataError(message)
    return ends


def _existing_marks(source: Source, topic: str) -> Mapping[TopicPartition, Watermarks]:
    try:
        return source.watermarks([topic])
    except MissingTopicError as error:
        message = (
            f"{error} It is the transaction topic, which says what belongs together; nothing is "
            "applied without it (a Hudi Streamer needed none). Set "
            "provide.transaction.metadata=true in the connector, or name the topic by "
            "lakeingest.transaction.topic. Two other values of lakeingest.transaction.mode do "
            "without it, and promise less (guide page 'connectors')."
        )
        raise UnavailableError(message) from error


def _portions(waiting: Mapping[TopicPartition, int], max_records: int) -> dict[TopicPartition, int]:
    """Return how many records of each partition to read."""
    total = sum(waiting.values())
    if total <= max_records:
        return dict(waiting)
    little = max(1, max_records // (_LITTLE * len(waiting)))
    return {
        place: min(count, max(little, count * max_records // total))
        for place, count in waiting.items()
    }


def _within_bytes(waiting: Mapping[TopicPartition, int], max_records: int, limits: Limits) -> int:
    """Return the number of records to aim at so that they have about ``limits.octets`` bytes."""
    if limits.octets is None or not limits.sizes:
        return max_records
    usual = sum(limits.sizes.values()) / len(limits.sizes)
    octets = sum(count * limits.sizes.get(place, usual) for place, count in waiting.items())
    if octets <= limits.octets:
        return max_records
    return max(1, min(max_records, int(sum(waiting.values()) * limits.octets / octets)))


def _ends(waiting: int, max_records: int, data: int, most: int | None) -> int:
    """Return how many records of the transaction topic to read with ``max_records`` of ``data``.

    At most two for each row: a BEGIN and an END.
    """
    part = min(1.0, _ENDS_AHEAD * max_records / max(1, data))
    bound = 2 * max_records + 2 if most is None else max(most, _LEAST_ENDS)
    return min(waiting, bound, max(_LEAST_ENDS, ceil(waiting * part)))
