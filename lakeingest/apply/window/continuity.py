"""Whether the log is the one that was read before, and is whole where nothing was read of it.

A partition that is read for the first time is read from where it begins. What was removed before
that is missing in the lake, and no later event tells of it: a table without its snapshot rows looks
like one whose source is small. So a first reading begins at offset 0. The low watermark decides,
not the first record: a compacted topic, or one that begins with an aborted transaction of Kafka's,
has a watermark of 0. A recording has no watermark but its records. Nothing tells there whether what
lies before the first one was cut off or never was a record, so it counts as missing. Rejected: to
pass a recording that begins with rows of a snapshot, because nothing counts those. What a recording
has no record of at all is not noticed.

The transaction topic is a partition like any other. Rows whose END is gone hold back all that
follows, and to say so before anything is read is cheaper than a window later. Where the missing
head is accepted, each such row still stops the run (``stall_detection.py``): no half transaction is
applied. So accepting helps where all topics begin between the same two transactions, and seldom
after retention, which cuts each topic where its own segments end. Rejected: to pass over what lies,
also in part, before the last head: an offset of one topic says nothing of the commits in another.

An offset means a record only in one topic. A topic that was deleted and made again may have grown
past the offset that is wanted. Its id tells: it is asked together with the watermarks, and kept
with the progress. A recording, and a broker before 2.8, have none; there offsets alone count. A
partition that was read and is gone tells the same. Not so in a recording: it may have been cut at
a place behind which a partition has no record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lakeingest.config.model import SourceConfig
from lakeingest.errors import DataError
from lakeingest.ledger.publication import Frontier
from lakeingest.source.bounds import check_retained, made_again
from lakeingest.source.contract import OffsetRange, TopicPartition, Watermarks
from lakeingest.topic_names import TopicNames

_SHOWN = 3
_Low = Mapping[TopicPartition, int | None]


@dataclass(frozen=True)
class LogRules:
    """What a pipeline accepts of its log.

    Attributes:
        names: The names of its topics.
        missing_head: ``accept``, or ``stop``: ``lakeingest.source.missing.head``.
        new_topic_id: ``accept``, or ``stop``: ``lakeingest.source.new.topic.id``.
    """

    names: TopicNames = field(default_factory=lambda: TopicNames(""))
    missing_head: str = "stop"
    new_topic_id: str = "stop"


def log_rules(source: SourceConfig) -> LogRules:
    """Return what a configuration accepts of its log."""
    return LogRules(source.names, source.missing_head, source.new_topic_id)


@dataclass(frozen=True)
class Continuation:
    """Where the log is read on.

    Attributes:
        starts: The lowest offset to read, by partition.
        heads: Of ``starts``, those above 0 with which a first reading begins.
        topic_ids: Ids of the topics of which something is read now, or was before.
        warnings: What was accepted.
    """

    starts: Mapping[TopicPartition, int]
    heads: Mapping[TopicPartition, int]
    topic_ids: Mapping[str, str]
    warnings: tuple[str, ...] = ()


def continuation(
    marks: Mapping[TopicPartition, Watermarks],
    frontier: Frontier,
    transaction_topic: str | None,
    rules: LogRules,
) -> Continuation:
    """Find where the log is read on.

    Args:
        marks: Bounds of all partitions that are read, the transaction topic's among them.
        frontier: Up to where everything is applied.
        transaction_topic: ``None`` where each event is on its own.
        rules: What the pipeline accepts.

    Raises:
        DataError: A topic or a partition that was read is gone or is another one, records that were
            not applied are gone, or a first reading does not begin at offset 0.
    """
    low = {
        place: frontier.low_end
        if place.topic == transaction_topic
        else frontier.low(place.topic, place.partition)
        for place in marks
    }
    accepted = _new_topic_ids(marks, low, frontier, rules)
    _refuse_vanished(marks, frontier, rules)
    wanted = [OffsetRange(p.topic, p.partition, at, at) for p, at in low.items() if at is not None]
    check_retained(wanted, marks)
    heads = {p: found.earliest for p, found in marks.items() if low[p] is None and found.earliest}
    if heads and rules.missing_head != "accept":
        raise _missing_head(heads, transaction_topic, rules.names)
    if heads:
        accepted.append(
            f"{_first_reading(heads, transaction_topic, rules.names)}: what lay before is not in "
            "the lake (lakeingest.source.missing.head=accept)."
        )
    starts = {p: marks[p].earliest if at is None else at for p, at in low.items()}
    read = {p.topic for p in marks if low[p] is not None or starts[p] < marks[p].high}
    ids = {p.topic: m.topic_id for p, m in marks.items() if p.topic in read and m.topic_id}
    return Continuation(starts, heads, ids, tuple(accepted))


def _new_topic_ids(
    marks: Mapping[TopicPartition, Watermarks], low: _Low, frontier: Frontier, rules: LogRules
) -> list[str]:
    """Compare the topics' ids with those they had; return what was accepted."""
    known = {
        place.topic: found.topic_id
        for place, found in marks.items()
        if low[place] is not None and found.topic_id
    }
    others = [
        topic
        for topic, now in known.items()
        if (before := frontier.topic_ids.get(topic)) is not None and before != now
    ]
    if others and rules.new_topic_id != "accept":
        raise made_again(others)
    return [
        f"Topic '{topic}' has another id than when it was last read; its offsets are taken for the "
        "same (lakeingest.source.new.topic.id=accept)."
        for topic in others
    ]


def _refuse_vanished(
    marks: Mapping[TopicPartition, Watermarks], frontier: Frontier, rules: LogRules
) -> None:
    """Stop where a topic or a partition that was read is gone."""
    if any(found.observed for found in marks.values()):
        return
    topics = {place.topic for place in marks}
    for topic, parts in frontier.offsets.items():
        if topic in topics:
            spans = [OffsetRange(topic, number, offset, offset) for number, offset in parts.items()]
            check_retained([span for span in spans if _place(span) not in marks], marks)
        elif rules.names.reads_topic(topic):
            table = rules.names.plain(topic)
            message = (
                f"Topic '{topic}' (table '{table}') was read before and does not exist any more: "
                "changes that were not applied may have been lost with it. If the table was given "
                f"up, lakeingest retire CONFIG '{table}' takes it out of the pipeline; a topic of "
                "which no table is published is left out by lakeingest.source.topics. Else let "
                "the connector take a new snapshot of all tables into new topics (its topics and "
                "offsets deleted) and load it into another lakeingest.target.path."
            )
            raise DataError(message)


def _missing_head(
    heads: Mapping[TopicPartition, int], transaction_topic: str | None, names: TopicNames
) -> DataError:
    what = "rows that lay"
    if transaction_topic in {place.topic for place in heads}:
        what = "rows, or the ENDs of rows, that lay"
    message = (
        f"{_first_reading(heads, transaction_topic, names)}: {what} before (removed by retention "
        "or by hand, or not recorded) would be missing in the lake. Nothing of this was read. "
        "Delete the connector's topics and offsets and let it take a new snapshot of all tables. "
        "Or, if all of it was removed while no transaction was under way, and nothing is missed or "
        "an incremental snapshot of the tables lies behind, set "
        "lakeingest.source.missing.head=accept until the next publication. (Retention cuts each "
        "topic at another commit: a transaction of which only a part is left stops the run.)"
    )
    return DataError(message)


def _first_reading(
    heads: Mapping[TopicPartition, int], transaction_topic: str | None, names: TopicNames
) -> str:
    """Return a clause that names the topics and partitions whose head is missing."""
    begins: dict[str, list[str]] = {}
    for place in sorted(heads):
        begins.setdefault(place.topic, []).append(f"{heads[place]} (partition {place.partition})")
    shown = (
        f"topic '{topic}' ("
        + ("the transaction topic" if topic == transaction_topic else _table(topic, names))
        + f") at offset {_few(offsets, ', ')}"
        for topic, offsets in begins.items()
    )
    return f"A first reading begins behind the head of its topic: {_few(list(shown), '; ')}"


def _few(texts: Sequence[str], comma: str) -> str:
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return comma.join(texts[:_SHOWN]) + more


def _table(topic: str, names: TopicNames) -> str:
    return f"table '{names.plain(topic)}'"


def _place(span: OffsetRange) -> TopicPartition:
    return TopicPartition(span.topic, span.partition)
