"""Find how far an initial snapshot reaches in partitions that a first window would cut short.

A snapshot is one window, whatever its size. To read a larger window each time its end is not in it
reads the log twice and more (a load of a million rows read it three times, half of its time). So
single records are read first, which show where the snapshot ends, more exactly in each round.

Rejected: to read all that waits. Behind a snapshot of a million rows may lie a backlog of a hundred
million changes. Where a second snapshot lies further on, records may seem to belong to the first
one; then what is between them is read, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakeingest.apply.window.offset_ranges import WindowRanges
from lakeingest.apply.window.window import PipelineLog
from lakeingest.engine.local_checkpoint import local_checkpoint
from lakeingest.frame_schemas import Kind
from lakeingest.plan.window import window_changes
from lakeingest.source.contract import OffsetRange, TopicPartition

_PROBES = 5
"""Records per partition that a round reads; each is a read of its own, as a source wants it."""

_MOST_PARTITIONS = 50
"""Number of partitions up to which their ends are looked for; else the window grows blindly."""

_LEAST_ACCURACY = 1_000
"""Records per partition that are cheaper to read than to look for its end more exactly."""


@dataclass(frozen=True)
class _End:
    """Where a partition's part of the snapshot ends.

    Attributes:
        behind: Offset behind which it ends.
        before: Offset of a streamed row, or the partition's high watermark.
    """

    behind: int
    before: int

    def probes(self) -> list[int]:
        """Return offsets between the two, in order."""
        between = range(self.behind + 1, self.before)
        return sorted({between[len(between) * n // _PROBES] for n in range(_PROBES) if between})

    def narrowed(self, streamed: int | None) -> _End:
        """Return the end after its probes were read, of which ``streamed`` was the first row."""
        before = self.before if streamed is None else streamed
        return _End(max([self.behind, *(o for o in self.probes() if o < before)]), before)


def records_of_snapshot(
    log: PipelineLog, ranges: WindowRanges, accuracy: int
) -> Mapping[TopicPartition, int]:
    """Return how many records to read of each partition that ``ranges`` cuts short.

    Args:
        log: The log.
        ranges: Ranges of a first window.
        accuracy: Number of records that may be read too many.

    Returns:
        Numbers of records, up to a streamed row or to the partition's high watermark; empty: no
        partition was cut short, or too many.
    """
    parts = {part.place: part for part in ranges.data}
    short = sorted(parts.keys() & ranges.cut_short)
    if not 0 < len(short) <= _MOST_PARTITIONS:
        return {}
    marks = log.source.watermarks(sorted({place.topic for place in short}))
    # The last record that the window reads anyway may be a streamed row.
    ends = {place: _End(parts[place].end - 2, marks[place].high) for place in short}
    most = max(_LEAST_ACCURACY, accuracy // len(ends))
    while wide := {place: end for place, end in ends.items() if end.before - end.behind > most}:
        streamed = _first_streamed(log, {place: end.probes() for place, end in wide.items()})
        ends |= {place: end.narrowed(streamed.get(place)) for place, end in wide.items()}
    return {place: end.before + 1 - parts[place].start for place, end in ends.items()}


def _first_streamed(
    log: PipelineLog, offsets: Mapping[TopicPartition, Sequence[int]]
) -> dict[TopicPartition, int]:
    """Return the lowest of some offsets per partition at which there is a streamed row."""
    rounds = max(map(len, offsets.values()))
    reads = [
        log.read_and_learn(
            [
                OffsetRange(place.topic, place.partition, own[number], own[number] + 1)
                for place, own in offsets.items()
                if number < len(own)
            ]
        )
        for number in range(rounds)
    ]
    records = local_checkpoint(reduce(DataFrame.unionByName, reads))
    # Without a checkpoint, Spark's optimizer takes seconds to move the condition in front.
    changes = local_checkpoint(window_changes(records, log.spec))
    rows = (
        changes.where(F.col("kind").isin(Kind.ROW, Kind.TRUNCATE))
        .groupBy("topic", "partition")
        .agg(F.min("offset").alias("offset"))
        .collect()
    )
    return {TopicPartition(row["topic"], row["partition"]): row["offset"] for row in rows}
