"""What a window holds: a handful of summary rows per partition and kind, never the rows.

One aggregation also fills the cache of the window. ``collect`` brings back summaries whose number
grows with partitions, tables and batches, not with events.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakeingest.decode.wire import WireFormat
from lakeingest.frame_schemas import Kind
from lakeingest.plan import window as plan
from lakeingest.source.contract import TopicPartition


@dataclass(frozen=True, order=True)
class Unended:
    """The first row of a transaction whose END was not read: its position, its transaction."""

    position: str
    transaction: str


@dataclass(frozen=True)
class Attempt:
    """What tells the rows of one attempt at an initial snapshot from those of another.

    Attributes:
        run: ``runId`` of the connector; null: its rows have none.
        place: Beginning of the position that all its rows share; empty: rows have their own.
    """

    run: str | None = None
    place: str = ""


@dataclass(frozen=True)
class Portion:
    """Records of one partition, collection and kind in a window; of a snapshot, of one attempt.

    ``first_new`` is the offset of the first one that is of no transaction released before; null:
    all have come again.
    """

    where: TopicPartition
    collection: str
    kind: str
    records: int
    first_offset: int
    highest: str
    source_ms: int
    marks: frozenset[str]
    tags: frozenset[bytes] = frozenset()
    last_offset: int = -1
    first_ms: int = 0
    firsts: int = 0
    attempt: Attempt = Attempt()
    unended: Unended | None = None
    first_new: int | None = None


_END_MARKS = frozenset({"last", "last_in_data_collection"})


@dataclass(frozen=True)
class Contents:
    """Summaries of a window.

    Attributes:
        portions: Of its records.
        stopped: Partitions that count as read up to a record that cannot be read only, and the
            highest streamed position before it; empty: nothing was streamed before it.
        superseded: Attempts at a snapshot that do not count; none of its records is theirs.
    """

    portions: tuple[Portion, ...]
    stopped: Mapping[TopicPartition, str] = field(default_factory=dict)
    superseded: frozenset[Attempt] = frozenset()

    def of(self, *kinds: str) -> Iterable[Portion]:
        """Return the portions of these kinds."""
        return (portion for portion in self.portions if portion.kind in kinds)

    def has_redelivered(self) -> bool:
        """Return whether rows belong to transactions that were released before."""
        rows = self.of(Kind.ROW, Kind.TRUNCATE)
        return any(row.first_new is None or row.first_new > row.first_offset for row in rows)

    def newest_attempt(self) -> Attempt:
        """Return which attempt at a snapshot the rows are of; where several count, the last."""
        attempts = {portion.attempt for portion in self.of(Kind.SNAPSHOT)}
        return max(attempts, key=lambda attempt: attempt.place, default=Attempt())

    def without(self, attempts: Collection[Attempt]) -> Contents:
        """Return what is left when these attempts at the snapshot do not count."""
        counting = (
            portion
            for portion in self.portions
            if portion.kind != Kind.SNAPSHOT or portion.attempt not in attempts
        )
        superseded = self.superseded | frozenset(attempts)
        return replace(self, portions=tuple(counting), superseded=superseded)

    def tags(self) -> frozenset[bytes]:
        """Return what names the schemas of the records."""
        return frozenset(tag for portion in self.portions for tag in portion.tags)

    def streaming(self) -> dict[TopicPartition, str]:
        """Return the highest streamed position that was read per partition."""
        highest: dict[TopicPartition, str] = {}
        for portion in self.of(Kind.ROW, Kind.TRUNCATE):
            highest[portion.where] = max(portion.highest, highest.get(portion.where, ""))
        highest |= self.stopped
        return {where: position for where, position in highest.items() if position}

    def first_unended(self) -> Unended | None:
        """Return the first row that waits for the END of its transaction, if any."""
        return min((p.unended for p in self.portions if p.unended), default=None)

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
        marks = self._snapshot_marks()
        ended = any(found & _END_MARKS for found in marks.values())
        return not ended or not self.snapshot_tables_open()

    def snapshot_tables_open(self) -> frozenset[str]:
        """Return the collections whose end marker is missing."""
        return frozenset(
            name
            for name, found in self._snapshot_marks().items()
            if not found & _END_MARKS and found != {"first"}
        )

    def snapshot_ends_marked(self) -> bool:
        """Return whether the end of the snapshot and of each of its collections is marked.

        Stricter than ``snapshot_marked_complete``: a lone first row may be one of many.
        """
        marks = self._snapshot_marks().values()
        return all(found & _END_MARKS for found in marks) and any(
            "last" in found for found in marks
        )

    def _snapshot_marks(self) -> dict[str, set[str]]:
        marks: dict[str, set[str]] = {}
        for portion in self.of(Kind.SNAPSHOT):
            marks.setdefault(portion.collection, set()).update(portion.marks)
        return marks


def contents(window: DataFrame, format_: WireFormat, below: str | None = None) -> Contents:
    """Summarise a window (``CHANGE``).

    Args:
        window: With ``end_offset`` where ``below`` is not null.
        format_: Of its records.
        below: Position below which every transaction was released; null: there are none.
    """
    snapshot = F.col("kind") == Kind.SNAPSHOT
    unended = []
    released = F.lit(False)
    if below is not None:
        of_transaction = F.col("transaction_key").isNotNull() & ~snapshot
        released = of_transaction & (F.col("position") < F.lit(below))
        waits = (
            F.col("kind").isin(Kind.ROW, Kind.TRUNCATE)
            & F.col("transaction_key").isNotNull()
            & F.col("end_offset").isNull()
            & (F.col("position") >= F.lit(below))
        )
        unended = [F.min(F.when(waits, F.struct("position", "transaction_key"))).alias("unended")]
    rows = (
        window.groupBy(
            "topic",
            "partition",
            "collection",
            "kind",
            F.when(snapshot, F.col("incarnation")).alias("run"),
            F.when(snapshot, plan.snapshot_place()).alias("place"),
        )
        .agg(
            F.count("*").alias("records"),
            F.min("offset").alias("first_offset"),
            F.max("offset").alias("last_offset"),
            F.min(F.when(released, None).otherwise(F.col("offset"))).alias("first_new"),
            F.min("source_ms").alias("first_ms"),
            F.count_if(snapshot & (F.col("snapshot") == "first")).alias("firsts"),
            F.max("position").alias("highest"),
            F.max("source_ms").alias("source_ms"),
            F.collect_set(F.when(snapshot, F.col("snapshot"))).alias("marks"),
            F.collect_set(format_.schema_tag(F.col("value"))).alias("value_tags"),
            F.collect_set(format_.key_tag(F.col("key"))).alias("key_tags"),
            *unended,
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
                row["last_offset"],
                row["first_ms"] or 0,
                row["firsts"],
                Attempt(row["run"], row["place"] or ""),
                Unended(*row["unended"]) if unended and row["unended"] else None,
                row["first_new"],
            )
            for row in rows
        )
    )
