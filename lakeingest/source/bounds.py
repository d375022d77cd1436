"""Check that the log still holds the records of a range, with the same message for every source.

The rejected way is Spark's ``failOnDataLoss=false``, which skips the records that retention
removed: the lake would differ from the source for ever and nobody would know. The other rejected
way is to rely on Spark's own error. It comes late, from a task, and names no remedy. For a range
that *ends* beyond the log (someone deleted the topic and created it again) it comes only after a
poll of two minutes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from lakeingest.errors import (
    DataError,
    InvariantError,
    LakeingestError,
    TransientError,
    UnavailableError,
)
from lakeingest.source.contract import OffsetRange, Source, TopicPartition, Watermarks
from lakeingest.source.topics import MissingTopicError

# The messages in which Spark's consumer (``KafkaDataConsumer.reportDataLoss``) and the Kafka client
# name a missing offset. Their other messages may be about another fault.
_LOSS = (
    re.compile(
        r"Cannot fetch offset (?P<offset>\d+) \(GroupId: [^,]*, TopicPartition: "
        r"(?P<topic>[\w.-]+)-(?P<partition>\d+)\)"
    ),
    re.compile(
        r"osition FetchPosition\{offset=(?P<offset>\d+),.*?"
        r"out of range for partition (?P<topic>[\w.-]+)-(?P<partition>\d+)"
    ),
)
_LOAD_ANEW = (
    "Do not go on from the old offsets: delete the connector's topics and offsets, let it take a "
    "new snapshot of all tables, and load it into another lakeingest.target.path."
)
_MADE_AGAIN = (
    "The topic was deleted and made again, or the broker lost data: its offsets mean other records "
    f"now. {_LOAD_ANEW}"
)
_SHOWN = 3


def checked_ranges(ranges: Sequence[OffsetRange]) -> list[OffsetRange]:
    """Return the non-empty ranges, in order of topic and partition.

    Raises:
        InvariantError: A range ends before it starts, or a partition has two ranges.
    """
    by_partition: dict[TopicPartition, OffsetRange] = {}
    for span in ranges:
        if span.start > span.end or span.start < 0:
            message = f"{span} is no range of offsets."
            raise InvariantError(message)
        if span.start == span.end:
            continue
        partition = span.place
        if partition in by_partition:
            message = f"{by_partition[partition]} and {span} are of one partition."
            raise InvariantError(message)
        by_partition[partition] = span
    return [by_partition[partition] for partition in sorted(by_partition)]


def check_retained(
    ranges: Sequence[OffsetRange], marks: Mapping[TopicPartition, Watermarks]
) -> None:
    """Check that the log still holds every offset of ``ranges``.

    Raises:
        DataError: A range starts below the earliest offset or ends beyond the log, or its
            partition no longer exists. The message names topic, partition, the requested offset,
            the existing one, and the remedy.
    """
    for span in ranges:
        bounds = marks.get(span.place)
        if bounds is None:
            message = (
                f"Topic {span.topic!r} has no partition {span.partition} any more, but offset "
                f"{span.start} of it is wanted. {_MADE_AGAIN}"
            )
            raise DataError(message)
        if span.start < bounds.earliest:
            raise _removed(span.topic, span.partition, span.start, bounds.earliest)
        if span.end > bounds.high:
            raise _behind_the_log(span.topic, span.partition, span.end, bounds.high)


def recreated_topic_error(topics: Sequence[str]) -> DataError:
    """Return the error for topics whose id differs from the id at the last read."""
    more = f" and {len(topics) - _SHOWN} more" if len(topics) > _SHOWN else ""
    shown = ", ".join(map(repr, topics[:_SHOWN]))
    return DataError(
        f"Kafka's id of topic {shown}{more} is another one than when it was last read: the topic "
        "was deleted and made again, or this is another cluster, and its offsets mean other "
        f"records now. {_LOAD_ANEW} Only if it is a copy with the same offsets (a linked cluster), "
        "set lakeingest.source.new.topic.id=accept."
    )


def data_loss_error(error: BaseException, source: Source) -> LakeingestError | None:
    """Translate a failure of Spark's Kafka reader about offsets that do not exist.

    Args:
        error: The exception of an action on a frame of ``source.read``.
        source: The source, which returns the current bounds.

    Returns:
        The error to raise from ``error``, or ``None`` if ``error`` is about something else. It is
        no ``DataError`` if the offset exists now, or if no broker says whether it exists: a
        replica that has just become the leader may lag for a moment.
    """
    text = str(error)
    match = next(
        (candidate for candidate in (loss.search(text) for loss in _LOSS) if candidate), None
    )
    if match is None:
        return None
    topic, partition, offset = match["topic"], int(match["partition"]), int(match["offset"])
    try:
        bounds = source.watermarks([topic]).get(TopicPartition(topic, partition))
    except MissingTopicError:
        # The whole topic is gone. Report the lost offset all the same.
        bounds = None
    except UnavailableError as away:
        return away
    if bounds is not None and bounds.earliest <= offset <= bounds.high:
        return TransientError(
            f"Topic {topic!r}, partition {partition}: a broker did not have offset {offset}, which "
            "is there now. Nothing of this window was published; run again."
        )
    if bounds is not None and offset > bounds.high:
        return _behind_the_log(topic, partition, offset, bounds.high)
    return _removed(topic, partition, offset, bounds.earliest if bounds else None)


def _removed(topic: str, partition: int, offset: int, earliest: int | None) -> DataError:
    """Return the error for an offset that retention or an operator removed."""
    state = "is gone" if earliest is None else f"is gone: the earliest there is {earliest}"
    return DataError(
        f"Topic {topic!r}, partition {partition}: offset {offset} is wanted but {state}. "
        "Retention (or delete-records) removed changes that were never applied, and they cannot "
        f"be read again from Kafka. {_LOAD_ANEW} Raise retention.ms (or retention.bytes) above the "
        "longest pause of the pipeline."
    )


def _behind_the_log(topic: str, partition: int, offset: int, high: int) -> DataError:
    return DataError(
        f"Topic {topic!r}, partition {partition}: offsets up to {offset} are wanted, but the log "
        f"ends at {high}. {_MADE_AGAIN}"
    )
