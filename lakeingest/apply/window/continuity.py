"""Check that the log is the one that was read before, and that no part of it was removed unread.

A partition that is read for the first time is read from its beginning. Records that were removed
before that are missing in the lake, and no later event reports it: a table without its snapshot
rows looks like a small table. So a first reading must begin at offset 0. The low watermark decides,
not the first record: a compacted topic, or one that begins with an aborted Kafka transaction, has a
watermark of 0. A recording has no watermark but its records. It does not show whether what lies
before the first record was cut off or never was a record, so that counts as missing. Rejected: to
accept a recording that begins with rows of a snapshot, because nothing counts those. A partition of
which a recording has no record at all is not noticed.

The transaction topic is checked like any other partition. Rows without their END block everything
behind them. To say so before anything is read is cheaper than to find it a window later. Where the
missing head is accepted, each such row still stops the run (``stall_detection.py``): no half
transaction is applied. So accepting helps where all topics begin between the same two transactions.
After retention they seldom do, because it cuts each topic where its own segments end. Rejected: to
skip everything that lies, also in part, before the last head, because an offset of one topic says
nothing of the commits in another.

An offset identifies a record only within one topic. A topic that was deleted and made again may
have grown past the offset to read next. Its id shows that: a run reads the id together with the
watermarks and stores it with the progress. A recording, and a broker before 2.8, have no ids; there
offsets alone count. A partition that was read and is gone shows the same, but not in a recording:
that may have been cut at a place behind which a partition has no record. Only a topic whose rows
need not arrive may be gone, or another one: that one is read from where it begins.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from lakeingest.config.model import PipelineConfig
from lakeingest.errors import ConfigError, DataError
from lakeingest.ledger.publication import Frontier
from lakeingest.source.bounds import check_retained, recreated_topic_error
from lakeingest.source.contract import OffsetRange, TopicPartition, Watermarks
from lakeingest.topic_names import TopicNames

_SHOWN = 3
_Low = Mapping[TopicPartition, int | None]


@dataclass(frozen=True)
class LogRules:
    """Deviations of the log that a pipeline accepts.

    Attributes:
        names: The names of its topics.
        missing_head: ``lakeingest.source.missing.head``: ``accept`` or ``stop``; ``refuse``: it may
            not be accepted, because nothing would show a transaction of which a part is missing.
        new_topic_id: ``lakeingest.source.new.topic.id``: ``accept`` or ``stop``.
        rewound: Topics that are read again from their beginning, with the offsets that were to be
            read next, by partition.
        uncounted: ``lakeingest.transaction.filtered.collections``: their rows need not arrive, so
            their topics may be gone, or made again.
    """

    names: TopicNames = field(default_factory=lambda: TopicNames(""))
    missing_head: str = "stop"
    new_topic_id: str = "stop"
    rewound: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    uncounted: Collection[str] = ()


def log_rules(config: PipelineConfig) -> LogRules:
    """Return the deviations of the log that a configuration accepts."""
    source = config.source
    return LogRules(
        source.names,
        "refuse" if source.transaction_mode == "boundary" else source.missing_head,
        source.new_topic_id,
        rewound=source.rewound_topics,
        uncounted=config.uncounted_collections,
    )


@dataclass(frozen=True)
class Continuation:
    """Where to read on in the log.

    Attributes:
        starts: The lowest offset to read, by partition.
        heads: Those of ``starts`` above 0 at which the first reading of a partition begins.
        remade: Topics that were read before, and are now read for the first time: see
            ``_remade_topics``.
        topic_ids: Ids of the topics of which something is read now, or was before.
        warnings: One for each accepted deviation.
    """

    starts: Mapping[TopicPartition, int]
    heads: Mapping[TopicPartition, int]
    topic_ids: Mapping[str, str]
    remade: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()


def continuation(
    marks: Mapping[TopicPartition, Watermarks],
    frontier: Frontier,
    transaction_topic: str | None,
    rules: LogRules,
) -> Continuation:
    """Find where to read on in the log.

    Args:
        marks: Bounds of all partitions to read, including the transaction topic's.
        frontier: Up to where everything is applied.
        transaction_topic: None where each event is on its own.
        rules: What the pipeline accepts.

    Raises:
        ConfigError: The transaction topic is not the one that was read before.
        DataError: A topic or a partition that was read is gone or was made again, records that were
            not applied are gone, or a first reading does not begin at offset 0.
    """
    low = {
        place: frontier.low_end
        if place.topic == transaction_topic
        else frontier.low(place.topic, place.partition)
        for place in marks
    }
    remade = _remade_topics(marks, frontier, rules)
    low |= dict.fromkeys((place for place in marks if place.topic in remade), None)
    _refuse_other_transaction_topic(marks, frontier, transaction_topic)
    warnings = _new_topic_ids(marks, low, frontier, rules)
    _refuse_remade(marks, low, frontier, rules)
    warnings += _vanished_topics(marks, frontier, rules, remade)
    next_offsets = [
        OffsetRange(p.topic, p.partition, offset, offset)
        for p, offset in low.items()
        if offset is not None
    ]
    check_retained(next_offsets, marks)
    heads = {
        p: bounds.earliest for p, bounds in marks.items() if low[p] is None and bounds.earliest
    }
    missing_heads = {p: offset for p, offset in heads.items() if p.topic not in remade}
    if missing_heads and rules.missing_head != "accept":
        _refuse_late_reload(missing_heads, rules)
        raise _missing_head(missing_heads, transaction_topic, rules)
    if missing_heads:
        warnings.append(
            f"{_first_reading(missing_heads, transaction_topic, rules.names)}: what lay before is "
            "not in the lake (lakeingest.source.missing.head=accept)."
        )
    starts = {p: marks[p].earliest if offset is None else offset for p, offset in low.items()}
    topics_read = {p.topic for p in marks if low[p] is not None or starts[p] < marks[p].high}
    topics_read |= remade
    ids = {p.topic: m.topic_id for p, m in marks.items() if p.topic in topics_read and m.topic_id}
    return Continuation(starts, heads, ids, remade, tuple(warnings))


def _uncounted_topics(rules: LogRules) -> set[str]:
    """Return the topics whose rows need not arrive, but for those that are read again."""
    return {rules.names.topic(name) for name in rules.uncounted} - rules.rewound.keys()


def _remade_topics(
    marks: Mapping[TopicPartition, Watermarks], frontier: Frontier, rules: LogRules
) -> frozenset[str]:
    """Return the topics that were made again and whose rows need not arrive.

    They have another id, or end before the offset that was to be read next.
    """
    uncounted = _uncounted_topics(rules) & frontier.offsets.keys()
    read = {place: bounds for place, bounds in marks.items() if place.topic in uncounted}
    with_other_ids = () if rules.new_topic_id == "accept" else _with_other_ids(read, frontier)
    shorter = {
        place.topic
        for place, bounds in read.items()
        if (frontier.low(place.topic, place.partition) or 0) > bounds.high
    }
    return frozenset((*with_other_ids, *shorter))


def _refuse_other_transaction_topic(
    marks: Mapping[TopicPartition, Watermarks], frontier: Frontier, transaction_topic: str | None
) -> None:
    """Stop where the lake's place in the transaction topic is one in a topic of another name.

    Sources that give no topic ids cannot show it.
    """
    has_ids = any(b.topic_id for p, b in marks.items() if p.topic == transaction_topic)
    is_other = frontier.topic_ids and transaction_topic not in frontier.topic_ids
    if has_ids and is_other and frontier.low_end is not None:
        message = (
            f"The lake was begun with another transaction topic than '{transaction_topic}': its "
            f"offset {frontier.low_end} means nothing here. Set lakeingest.source.topic.prefix "
            "and lakeingest.transaction.topic as they were, or load the lake anew (another "
            "lakeingest.target.path)."
        )
        raise ConfigError(message)


def _refuse_remade(
    marks: Mapping[TopicPartition, Watermarks], low: _Low, frontier: Frontier, rules: LogRules
) -> None:
    """Stop where topics that are read from their beginning again are others than were read.

    They have no offset by which ``_new_topic_ids`` and ``check_retained`` could tell.

    Raises:
        DataError: A topic has another id, or ends before the offset that was to be read next.
    """
    rewound = {
        place: bounds
        for place, bounds in marks.items()
        if low[place] is None and place.topic in rules.rewound
    }
    changed_topics = _with_other_ids(rewound, frontier)
    if changed_topics and rules.new_topic_id != "accept":
        raise recreated_topic_error(changed_topics)
    read_to = {place: rules.rewound[place.topic].get(place.partition, 0) for place in rewound}
    beyond = [
        OffsetRange(place.topic, place.partition, offset, offset)
        for place, offset in read_to.items()
        if offset > marks[place].high
    ]
    check_retained(beyond, marks)


def _refuse_late_reload(heads: Mapping[TopicPartition, int], rules: LogRules) -> None:
    """Stop where the head of a topic was removed before its table was loaded anew.

    Raises:
        DataError: It was, and nothing that followed the earlier load is gone yet.
    """
    reads_on = {
        place: offset <= rules.rewound[place.topic].get(place.partition, 0)
        for place, offset in heads.items()
        if place.topic in rules.rewound
    }
    if reads_on and all(reads_on.values()):
        rewound = {place: heads[place] for place in reads_on}
        tables = sorted({rules.names.plain(place.topic) for place in rewound})
        command = " ".join(f"'{table}'" for table in tables)
        message = (
            f"{_first_reading(rewound, None, rules.names)}. It is to be loaded anew, and what lay "
            "before would be missing (removed by retention or by hand). Nothing of this was read. "
            "Let the connector take an incremental snapshot of the whole table, then set "
            "lakeingest.source.missing.head=accept until the next publication (lakeingest guide "
            "operations). Or, where it was begun, go on with the earlier load, as long as the "
            f"topic holds what followed it: lakeingest reload CONFIG {command} --undo."
        )
        raise DataError(message)


def _new_topic_ids(
    marks: Mapping[TopicPartition, Watermarks], low: _Low, frontier: Frontier, rules: LogRules
) -> list[str]:
    """Compare the topics' ids with the stored ones; return a warning for each accepted one."""
    read_before = {place: bounds for place, bounds in marks.items() if low[place] is not None}
    changed_topics = _with_other_ids(read_before, frontier)
    if changed_topics and rules.new_topic_id != "accept":
        raise recreated_topic_error(changed_topics)
    return [
        f"Topic '{topic}' has another id than when it was last read; its offsets are taken for the "
        "same (lakeingest.source.new.topic.id=accept)."
        for topic in changed_topics
    ]


def _with_other_ids(marks: Mapping[TopicPartition, Watermarks], frontier: Frontier) -> list[str]:
    """Return the topics whose ids are not the stored ones."""
    ids = {place.topic: bounds.topic_id for place, bounds in marks.items() if bounds.topic_id}
    return [topic for topic, id_ in ids.items() if frontier.topic_ids.get(topic, id_) != id_]


def _vanished_topics(
    marks: Mapping[TopicPartition, Watermarks],
    frontier: Frontier,
    rules: LogRules,
    remade: frozenset[str],
) -> list[str]:
    """Stop where a topic or a partition that was read is gone, or say that it is."""
    warnings = [
        f"Topic '{topic}' was deleted and made again, and is read from where it begins; what the "
        "earlier one held and no run had read is not in the lake "
        "(lakeingest.transaction.filtered.collections)."
        for topic in sorted(remade)
    ]
    if any(bounds.observed for bounds in marks.values()):
        return warnings
    topics, accepted = {place.topic for place in marks}, _uncounted_topics(rules)
    for topic, parts in {**rules.rewound, **frontier.offsets}.items():
        if topic in remade:
            continue
        if topic in topics:
            spans = [OffsetRange(topic, number, offset, offset) for number, offset in parts.items()]
            check_retained([span for span in spans if span.place not in marks], marks)
        elif topic in accepted:
            warnings.append(
                f"Topic '{topic}' does not exist any more; what it held and no run had read is not "
                "in the lake (lakeingest.transaction.filtered.collections)."
            )
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
    return warnings


def _missing_head(
    heads: Mapping[TopicPartition, int], transaction_topic: str | None, rules: LogRules
) -> DataError:
    what = "rows that lay"
    if transaction_topic in {place.topic for place in heads}:
        what = "rows, or the ENDs of rows, that lay"
    message = (
        f"{_first_reading(heads, transaction_topic, rules.names)}: {what} before (removed by "
        "retention or by hand, or not recorded) would be missing in the lake. Nothing of this was "
        "read. Delete the connector's topics and offsets and let it take a new snapshot of all "
        "tables."
    )
    return DataError(message if rules.missing_head == "refuse" else f"{message} {_OR_ACCEPT}")


_OR_ACCEPT = (
    "Or, if all of it was removed while no transaction was under way, and nothing is missed or an "
    "incremental snapshot of the tables lies behind, set lakeingest.source.missing.head=accept "
    "until the next publication. (Retention cuts each topic at another commit: a transaction of "
    "which only a part is left stops the run.)"
)


def _first_reading(
    heads: Mapping[TopicPartition, int], transaction_topic: str | None, names: TopicNames
) -> str:
    """Return a clause that names the topics and partitions whose head is missing."""
    begins: dict[str, list[str]] = {}
    for place in sorted(heads):
        begins.setdefault(place.topic, []).append(f"{heads[place]} (partition {place.partition})")
    clauses = (
        f"topic '{topic}' ("
        + ("the transaction topic" if topic == transaction_topic else _table(topic, names))
        + f") at offset {_few(offsets, ', ')}"
        for topic, offsets in begins.items()
    )
    return f"A first reading begins behind the head of its topic: {_few(list(clauses), '; ')}"


def _few(texts: Sequence[str], comma: str) -> str:
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return comma.join(texts[:_SHOWN]) + more


def _table(topic: str, names: TopicNames) -> str:
    return f"table '{names.plain(topic)}'"
