"""What a window holds: a handful of summary rows per partition and kind, never the rows.

One aggregation also fills the cache of the window. ``collect`` brings back summaries whose number
grows with partitions, tables and batches, not with events.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakeingest.decode.wire import WireFormat
from lakeingest.shape import Kind
from lakeingest.source.contract import TopicPartition


@dataclass(frozen=True)
class Portion:
    """Records of one partition, collection and kind in a window."""

    where: TopicPartition
    collection: str
    kind: str
    records: int
    first_offset: int
    highest: str
    source_ms: int
    marks: frozenset[str]
    tags: frozenset[bytes] = frozenset()


_END_MARKS = frozenset({"last", "last_in_data_collection"})


@dataclass(frozen=True)
class Contents:
    """Summaries of a window."""

    portions: tuple[Portion, ...]

    def of(self, *kinds: str) -> Iterable[Portion]:
        """Return the portions of these kinds."""
        return (portion for portion in self.portions if portion.kind in kinds)

    def tags(self) -> frozenset[bytes]:
        """Return what names the schemas of the records."""
        return frozenset(tag for portion in self.portions for tag in portion.tags)

    def streaming(self) -> dict[TopicPartition, str]:
        """Return the highest streamed position per partition."""
        highest: dict[TopicPartition, str] = {}
        for portion in self.of(Kind.ROW, Kind.TRUNCATE):
            highest[portion.where] = max(portion.highest, highest.get(portion.where, ""))
        return highest

    def first_malformed(self) -> Portion | None:
        """Return the portion with a record that is no Debezium event, if any."""
        return min(self.of(Kind.MALFORMED), key=lambda p: p.first_offset, default=None)

    def snapshot_marked_complete(self) -> bool:
        """Tell whether the markers say that the initial snapshot is over.

        ``last`` alone is not enough (parallel snapshots set it early): every collection that has
        snapshot rows must have its own end marker too. Source: Debezium's ``SnapshotRecord``.
        """
        last = any("last" in portion.marks for portion in self.of(Kind.SNAPSHOT))
        return last and self.snapshot_tables_closed()

    def snapshot_tables_closed(self) -> bool:
        """Tell whether no collection with snapshot rows misses its end marker.

        Connectors that set no end marker at all (before Debezium 1.9) cannot be asked: true. The
        first row of all is marked as that, even if it is the only one of its table.
        """
        marks: dict[str, set[str]] = {}
        for portion in self.of(Kind.SNAPSHOT):
            marks.setdefault(portion.collection, set()).update(portion.marks)
        ended = [bool(found & _END_MARKS) for found in marks.values()]
        closed = [
            end or found == {"first"} for end, found in zip(ended, marks.values(), strict=True)
        ]
        return all(closed) or not any(ended)


def contents(window: DataFrame, format_: WireFormat) -> Contents:
    """Summarise a window (``shape.CHANGE``)."""
    rows = (
        window.groupBy("topic", "partition", "collection", "kind")
        .agg(
            F.count("*").alias("records"),
            F.min("offset").alias("first_offset"),
            F.max("position").alias("highest"),
            F.max("source_ms").alias("source_ms"),
            F.collect_set(F.when(F.col("kind") == Kind.SNAPSHOT, F.col("snapshot"))).alias("marks"),
            F.collect_set(format_.schema_tag(F.col("value"))).alias("value_tags"),
            F.collect_set(format_.key_tag(F.col("key"))).alias("key_tags"),
        )
        .collect()
    )
    return Contents(
        tuple(
            Portion(
                TopicPartition(row["topic"], row["partition"]),
                row["collection"] or "",
                row["kind"],
                row["records"],
                row["first_offset"],
                row["highest"] or "",
                row["source_ms"] or 0,
                frozenset(row["marks"]),
                frozenset(map(bytes, (*row["value_tags"], *row["key_tags"]))),
            )
            for row in rows
        )
    )
