"""How large the next window is: bounded in records, bytes and ENDs, whatever waits.

A window grows only where it has to. Where a transaction is in the way that is larger than a window,
the partitions that were not read past it are read farther by what its END counts; the others, and
the transaction topic, stay as they are: a backlog of 100 million rows is not read because one
transaction has a million. Rejected, because it did that: all of the window four times as large.
That is left for what no END is known of, such as the initial snapshot, which is one window.

And for a transaction that lacks rows though every partition was read past it: there the bound does
not hold, and the backlog is one window before the run stops. To stop earlier would be wrong: a
connector that was killed sends rows again far behind, and the new snapshot that is the way out of a
lost row lies behind all that waits.

ENDs come to the driver, a line each, so their number is what its memory depends on: a window reads
no more of the transaction topic than its records could need, and keeps to that while it grows. Rows
stay with the executors, in memory or on disk.

Bytes of a record are learned from the batches before, by partition; before the first batch from a
few records, if so many wait that it matters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import functions as F

from lakeingest.apply.batch_stats import BatchStats
from lakeingest.apply.window.offset_ranges import GROWTH, Limits, WindowRanges
from lakeingest.apply.window.window import Window
from lakeingest.frame_schemas import Kind
from lakeingest.source.contract import Source, TopicPartition

SAMPLED_FROM = 50_000
"""Records of a first window from which their size is looked at before they are read."""

_SAMPLE = 50
"""Records per partition that are looked at."""

_OVERHEAD = 200
"""Bytes of a record beside its value: key, headers, place."""


@dataclass(frozen=True)
class Span:
    """How far the next window reaches.

    Attributes:
        records: Records of data topics that it aims at.
        octets: Bytes that it aims at.
        growth: How many times that, and its bytes.
        ends_growth: How many times the records of the transaction topic.
        further: Records that are read at least, by partition.
        sizes: Bytes of a record, by partition.
    """

    records: int
    octets: int
    growth: int = 1
    ends_growth: int = 1
    further: Mapping[TopicPartition, int] | None = None
    sizes: Mapping[TopicPartition, float] | None = None

    @property
    def aimed(self) -> int:
        """Records of data topics that are aimed at."""
        return self.records * self.growth

    @property
    def limits(self) -> Limits:
        """What bounds a window besides."""
        return Limits(
            octets=self.octets * self.growth,
            sizes=self.sizes or {},
            further=self.further or {},
            # A BEGIN and an END for each row at most.
            ends=(2 * self.records + 2) * self.ends_growth,
        )

    def afresh(self, batch_stats: Iterable[BatchStats]) -> Span:
        """Return the span after a window that gave batches, with what they tell of sizes."""
        octets: dict[TopicPartition, int] = {}
        rows: dict[TopicPartition, int] = {}
        for stats in batch_stats:
            octets[stats.where] = octets.get(stats.where, 0) + stats.size
            rows[stats.where] = rows.get(stats.where, 0) + stats.rows
        new = {place: octets[place] / rows[place] + _OVERHEAD for place in rows if rows[place]}
        return Span(self.records, self.octets, sizes={**(self.sizes or {}), **new} or None)

    def after_nothing(self, window: Window, through: int | None) -> Span:
        """Return the span after a window that completed nothing and was not read to the end.

        Args:
            window: The window.
            through: END that the first batch must reach, if there is one.
        """
        needed = behind_the_first(window)
        if needed and through is None:
            return replace(self, further={**(self.further or {}), **needed})
        rows = bool(window.ranges.cut_short)
        ends = not rows or through is not None
        return replace(
            self,
            growth=self.growth * (GROWTH if rows else 1),
            ends_growth=self.ends_growth * (GROWTH if ends else 1),
        )

    def sampled(self, source: Source, ranges: WindowRanges) -> Span:
        """Return the span with the sizes of a few records of each range; one job."""
        found = (
            source.read([replace(p, end=min(p.end, p.start + _SAMPLE)) for p in ranges.data])
            .groupBy("topic", "partition")
            .agg(F.avg(F.coalesce(F.octet_length("value"), F.lit(0))).alias("octets"))
            .collect()
        )
        sizes = {
            TopicPartition(row["topic"], row["partition"]): row["octets"] + _OVERHEAD
            for row in found
        }
        return replace(self, sizes=sizes)


def behind_the_first(window: Window) -> dict[TopicPartition, int]:
    """Return how many records to read of the partitions not read past the first transaction.

    Args:
        window: It completed nothing.

    Returns:
        Empty where no END is known to be in the way, or every partition was read past it.
    """
    end = window.in_the_way
    if end is None or any(True for _ in window.contents.of(Kind.SNAPSHOT)):
        return {}
    reached = window.contents.streaming()
    needed = {}
    for part in window.ranges.data:
        place = TopicPartition(part.topic, part.partition)
        if place in window.ranges.cut_short and reached.get(place, "") < end.position:
            read = part.end - part.start
            # At least twice as many: rows that came again lie between.
            needed[place] = read + max(read, end.events)
    return needed
