"""Summarise what a window holds: a handful of rows per partition and kind, never its own rows.

The aggregation also fills the cache of the window. ``collect`` brings summaries to the driver.
Their number grows with partitions, tables and batches, not with events.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeingest.decode.wire import WireFormat
from lakeingest.engine.known_columns import Selection, column, made_once
from lakeingest.envelope.family import SNAPSHOT_END_MARKS
from lakeingest.frame_schemas import Kind
from lakeingest.plan.snapshot_attempts import snapshot_place
from lakeingest.source.contract import TopicPartition


@dataclass(frozen=True, order=True)
class RowWithoutEnd:
    """The first row of a transaction whose END was not read: its position and its transaction."""

    position: str
    transaction: str


@dataclass(frozen=True)
class Attempt:
    """Identity of one attempt at an initial snapshot: what all of its rows have in common.

    Attributes:
        run: ``runId`` of the connector; None: its rows have none.
        place: Beginning that the positions of all its rows have; empty: each row has its own.
    """

    run: str | None = None
    place: str = ""


@dataclass(frozen=True)
class Portion:
    """Records of one partition, collection and kind in a window; of a snapshot, of one attempt.

    ``first_new`` is the offset of the first record whose transaction was not released before. None:
    all records are redelivered.
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
    unended: RowWithoutEnd | None = None
    first_new: int | None = None


@dataclass(frozen=True)
class Contents:
    """Summaries of a window.

    Attributes:
        portions: Summaries of its records.
        stopped: Partitions that count as read only up to an unreadable record, with the highest
            streamed position before that record; empty: nothing was streamed before it.
        superseded: Attempts at a snapshot that do not count; ``portions`` has none of their
            records.
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
        """Return the attempt of the snapshot's rows; where several attempts count, the last."""
        attempts = {portion.attempt for portion in self.of(Kind.SNAPSHOT)}
        return max(attempts, key=lambda attempt: attempt.place, default=Attempt())

    def without(self, attempts: Collection[Attempt]) -> Contents:
        """Return the contents without these attempts at the snapshot, which do not count."""
        counting = (
            portion
            for portion in self.portions
            if portion.kind != Kind.SNAPSHOT or portion.attempt not in attempts
        )
        superseded = self.superseded | frozenset(attempts)
        return replace(self, portions=tuple(counting), superseded=superseded)

    def tags(self) -> frozenset[bytes]:
        """Return the tags of the records' schemas."""
        return frozenset(tag for portion in self.portions for tag in portion.tags)

    def streaming(self) -> dict[TopicPartition, str]:
        """Return the highest streamed position that was read, per partition."""
        highest: dict[TopicPartition, str] = {}
        for portion in self.of(Kind.ROW, Kind.TRUNCATE):
            highest[portion.where] = max(portion.highest, highest.get(portion.where, ""))
        highest |= self.stopped
        return {where: position for where, position in highest.items() if position}

    def first_unended(self) -> RowWithoutEnd | None:
        """Return the first row that waits for the END of its transaction, if any."""
        return min((p.unended for p in self.portions if p.unended), default=None)

    def snapshot_marked_complete(self) -> bool:
        """Return whether the markers say that the initial snapshot is over.

        ``last`` alone is not enough (parallel snapshots set it early): every collection that has
        snapshot rows must have its own end marker too. Source: Debezium's ``SnapshotRecord``.
        """
        last = any("last" in portion.marks for portion in self.of(Kind.SNAPSHOT))
        return last and self.snapshot_tables_closed()

    def snapshot_tables_closed(self) -> bool:
        """Return whether each collection with snapshot rows has its end marker.

        Connectors before Debezium 1.9 set no end marker at all; for them the answer is True. The
        first row of the snapshot is marked as the first, even if it is the only row of its table;
        so a table with that one row needs no end marker.
        """
        marks = self._snapshot_marks()
        ended = any(table_marks & SNAPSHOT_END_MARKS for table_marks in marks.values())
        return not ended or not self.snapshot_tables_open()

    def snapshot_tables_open(self) -> frozenset[str]:
        """Return the collections whose end marker is missing."""
        return frozenset(
            name
            for name, table_marks in self._snapshot_marks().items()
            if not table_marks & SNAPSHOT_END_MARKS and table_marks != {"first"}
        )

    def snapshot_ends_marked(self) -> bool:
        """Return whether the end of the snapshot and of each of its collections is marked.

        This is stricter than ``snapshot_marked_complete``: a first row that stands alone may be one
        of many rows of its table.
        """
        marks = self._snapshot_marks().values()
        return all(table_marks & SNAPSHOT_END_MARKS for table_marks in marks) and any(
            "last" in table_marks for table_marks in marks
        )

    def _snapshot_marks(self) -> dict[str, set[str]]:
        marks: dict[str, set[str]] = {}
        for portion in self.of(Kind.SNAPSHOT):
            marks.setdefault(portion.collection, set()).update(portion.marks)
        return marks


def contents(window: DataFrame, format_: WireFormat, below: str | None = None) -> Contents:
    """Summarise a window (``CHANGE``).

    Args:
        window: Changes; with ``end_offset`` unless ``below`` is None.
        format_: Format of its records.
        below: Position below which every transaction was released; None: there are no transactions.
    """
    if below is not None:
        window = window.withColumn("_is_released", F.col("position") < F.lit(below))
    tags = format_.schema_tag(column("value")), format_.key_tag(column("key"))
    groups, summary = _portions(*tags, whole=below is not None)
    rows = summary.of_groups(window, groups).collect()
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
                RowWithoutEnd(*row["unended"]) if row["unended"] else None,
                row["first_new"],
            )
            for row in rows
        )
    )


@made_once
def _portions(value_tag: Column, key_tag: Column, *, whole: bool) -> tuple[Selection, Selection]:
    """Return what identifies a portion, and its summary.

    Args:
        value_tag: Tag of the schema of ``value``.
        key_tag: Tag of the schema of ``key``.
        whole: Whether there are transactions.
    """
    snapshot = F.col("kind") == Kind.SNAPSHOT
    of_transaction = F.col("transaction_key").isNotNull()
    released, waits = F.lit(False), F.lit(False)
    if whole:
        released = of_transaction & ~snapshot & F.col("_is_released")
        is_streamed = F.col("kind").isin(Kind.ROW, Kind.TRUNCATE)
        has_no_end = F.col("end_offset").isNull() & ~F.col("_is_released")
        waits = is_streamed & of_transaction & has_no_end
    groups = Selection(
        "topic",
        "partition",
        "collection",
        "kind",
        F.when(snapshot, F.col("incarnation")).alias("run"),
        F.when(snapshot, snapshot_place()).alias("place"),
    )
    summary = Selection(
        F.count("*").alias("records"),
        F.min("offset").alias("first_offset"),
        F.max("offset").alias("last_offset"),
        F.min(F.when(released, None).otherwise(F.col("offset"))).alias("first_new"),
        F.min("source_ms").alias("first_ms"),
        F.count_if(snapshot & (F.col("snapshot") == "first")).alias("firsts"),
        F.max("position").alias("highest"),
        F.max("source_ms").alias("source_ms"),
        F.collect_set(F.when(snapshot, F.col("snapshot"))).alias("marks"),
        F.collect_set(value_tag).alias("value_tags"),
        F.collect_set(key_tag).alias("key_tags"),
        F.min(F.when(waits, F.struct("position", "transaction_key"))).alias("unended"),
    )
    return groups, summary
