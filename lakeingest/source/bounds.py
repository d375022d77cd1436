"""Are the records of a range still there? One answer, and one message, for every source.

The rejected way is Spark's ``failOnDataLoss=false``, which skips what retention removed: the lake
would differ from the source for ever and nobody would know. The other rejected way is to leave it
to Spark's own error: it comes late, out of a task, names no remedy, and for a range that *ends*
behind the log (a topic deleted and made again) it only comes after a poll of two minutes.
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

# How Spark's consumer (``KafkaDataConsumer.reportDataLoss``) and the Kafka client name the place
# that is gone. Everything else they report may be another fault.
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


def wanted_ranges(ranges: Sequence[OffsetRange]) -> list[OffsetRange]:
    """Return the ranges that hold an offset, in order of topic and partition.

    Raises:
        InvariantError: A range ends before it starts, or a partition has two ranges.
    """
    wanted: dict[TopicPartition, OffsetRange] = {}
    for span in ranges:
        if span.start > span.end or span.start < 0:
            message = f"{span} is no range of offsets."
            raise InvariantError(message)
        if span.start == span.end:
            continue
        place = TopicPartition(span.topic, span.partition)
        if place in wanted:
            message = f"{wanted[place]} and {span} are of one partition."
            raise InvariantError(message)
        wanted[place] = span
    return [wanted[place] for place in sorted(wanted)]


def check_retained(
    ranges: Sequence[OffsetRange], marks: Mapping[TopicPartition, Watermarks]
) -> None:
    """Check that the log still holds every offset of ``ranges``.

    Raises:
        DataError: A range starts below the earliest offset or ends behind the log; the message
            names topic, partition, the wanted and the existing offsets, and the remedy.
    """
    for span in ranges:
        bounds = marks.get(TopicPartition(span.topic, span.partition))
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


def made_again(topics: Sequence[str]) -> DataError:
    """Return the error for topics that have another id than when they were last read."""
    more = f" and {len(topics) - _SHOWN} more" if len(topics) > _SHOWN else ""
    named = ", ".join(map(repr, topics[:_SHOWN]))
    return DataError(
        f"Kafka's id of topic {named}{more} is another one than when it was last read: the topic "
        "was deleted and made again, or this is another cluster, and its offsets mean other "
        f"records now. {_LOAD_ANEW} Only if it is a copy with the same offsets (a linked cluster), "
        "set lakeingest.source.new.topic.id=accept."
    )


def data_loss_error(error: BaseException, source: Source) -> LakeingestError | None:
    """Translate a failure of Spark's Kafka reader about offsets that do not exist.

    Args:
        error: What an action on a frame of ``source.read`` raised.
        source: Asked for the bounds as they are now.

    Returns:
        The error to raise from ``error``, or None if ``error`` is about something else. It is no
        ``DataError`` where the offset is there, or where no broker says whether it is: a replica
        that has just become the leader may lag for a moment.
    """
    text = str(error)
    found = next((match for match in (loss.search(text) for loss in _LOSS) if match), None)
    if found is None:
        return None
    topic, partition, wanted = found["topic"], int(found["partition"]), int(found["offset"])
    try:
        bounds = source.watermarks([topic]).get(TopicPartition(topic, partition))
    except MissingTopicError:
        # The topic itself is gone; the loss is still the thing to report.
        bounds = None
    except UnavailableError as away:
        return away
    if bounds is not None and bounds.earliest <= wanted <= bounds.high:
        return TransientError(
            f"Topic {topic!r}, partition {partition}: a broker did not have offset {wanted}, which "
            "is there now. Nothing of this window was published; run again."
        )
    if bounds is not None and wanted > bounds.high:
        return _behind_the_log(topic, partition, wanted, bounds.high)
    return _removed(topic, partition, wanted, bounds.earliest if bounds else None)


def _removed(topic: str, partition: int, wanted: int, earliest: int | None) -> DataError:
    """Return the error for offsets that retention or an operator removed."""
    first = "is gone" if earliest is None else f"is gone: the earliest there is {earliest}"
    return DataError(
        f"Topic {topic!r}, partition {partition}: offset {wanted} is wanted but {first}. Retention "
        "(or delete-records) removed changes that were never applied, and they cannot be read "
        f"again from Kafka. {_LOAD_ANEW} Raise retention.ms (or retention.bytes) above the longest "
        "pause of the pipeline."
    )


def _behind_the_log(topic: str, partition: int, wanted: int, high: int) -> DataError:
    return DataError(
        f"Topic {topic!r}, partition {partition}: offsets up to {wanted} are wanted, but the log "
        f"ends at {high}. {_MADE_AGAIN}"
    )
