"""Decide how large the next window is: bounded in records, bytes and ENDs, whatever waits.

A window grows only where it has to. If a transaction is larger than a window, the partitions that
were not read past it are read further, by the rows that its END counts. The other partitions and
the transaction topic stay as they are: a backlog of 100 million rows is not read because one
transaction has a million. Rejected, because it did that: all of the window four times as large.
That remains for what no END is known of, such as an initial snapshot where single records did not
show how far it reaches (``snapshot_extent.py``): a snapshot is one window.

It remains, too, for a transaction that lacks rows although every partition was read past it. There
the bound does not hold, and the backlog is one window before the run stops. To stop earlier would
be wrong: a killed connector sends rows again far behind, and the new snapshot that repairs a lost
row lies behind everything that waits.

ENDs come to the driver, a line each, so their number decides how much memory it needs. A window
reads no more of the transaction topic than its records could need, also while it grows. Rows stay
with the executors, in memory or on disk.

The bytes of a record are learned from the batches before, by partition. Before the first batch they
are learned from a few records, if so many wait that it matters.
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
"""Number of records of a first window from which their size is sampled before it is read."""

_SAMPLE = 50
"""Records per partition in a sample."""

_OVERHEAD = 200
"""Bytes of a record beside its value: key, headers, topic, partition and offset."""


@dataclass(frozen=True)
class Span:
    """How far the next window reads.

    Attributes:
        records: Target number of records of data topics.
        octets: Target number of their bytes.
        growth: Factor on both targets.
        ends_growth: Factor on the records of the transaction topic.
        further: Least number of records to read, by partition.
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
        """Target number of records of data topics, grown."""
        return self.records * self.growth

    @property
    def limits(self) -> Limits:
        """Further bounds of the window."""
        return Limits(
            octets=self.octets * self.growth,
            sizes=self.sizes or {},
            further=self.further or {},
            # A BEGIN and an END for each row at most.
            ends=(2 * self.records + 2) * self.ends_growth,
        )

    def afresh(self, batch_stats: Iterable[BatchStats]) -> Span:
        """Return the span after a window that gave batches; their statistics give new sizes."""
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
            through: END that must close the first batch; None: any END may.
        """
        records = behind_the_first(window)
        if records and through is None:
            return replace(self, further={**(self.further or {}), **records})
        rows = bool(window.ranges.cut_short)
        ends = not rows or through is not None
        return replace(
            self,
            growth=self.growth * (GROWTH if rows else 1),
            ends_growth=self.ends_growth * (GROWTH if ends else 1),
        )

    def sampled(self, source: Source, ranges: WindowRanges) -> Span:
        """Return the span with the sizes of a few records of each range; runs one job."""
        samples = (
            source.read([replace(p, end=min(p.end, p.start + _SAMPLE)) for p in ranges.data])
            .groupBy("topic", "partition")
            .agg(F.avg(F.coalesce(F.octet_length("value"), F.lit(0))).alias("octets"))
            .collect()
        )
        sizes = {
            TopicPartition(row["topic"], row["partition"]): row["octets"] + _OVERHEAD
            for row in samples
        }
        return replace(self, sizes=sizes)


def behind_the_first(window: Window) -> dict[TopicPartition, int]:
    """Return how many records to read of the partitions not read past the first transaction.

    Args:
        window: A window that completed nothing.

    Returns:
        Empty where no END is known to block the window, or every partition was read past it.
    """
    end = window.in_the_way
    if end is None or any(True for _ in window.contents.of(Kind.SNAPSHOT)):
        return {}
    positions = window.contents.streaming()
    records = {}
    for part in window.ranges.data:
        place = part.place
        if place in window.ranges.cut_short and positions.get(place, "") < end.position:
            read = part.end - part.start
            # At least twice as many: redelivered rows lie between.
            records[place] = read + max(read, end.events)
    return records
