"""Define what a window holds, as far as decisions about it need to know."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import Row

from lakeingest.envelope.family import SNAPSHOT_END_MARKS
from lakeingest.frame_schemas import Kind
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
    all records are redelivered. ``first_end`` is the lowest END of the records' transactions,
    ``unplaced_end`` the highest of those with rows that begin at zero. None: none has an END.
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
    first_end: int | None = None
    unplaced_end: int | None = None


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

    def redelivered(self) -> frozenset[str]:
        """Return the tables with rows of transactions that were released before."""
        rows = self.of(Kind.ROW, Kind.TRUNCATE)
        return frozenset(
            row.collection
            for row in rows
            if row.first_new is None or row.first_new > row.first_offset
        )

    def has_snapshot(self) -> bool:
        """Return whether there are rows of an initial snapshot."""
        return any(True for _ in self.of(Kind.SNAPSHOT))

    def newest_attempt(self) -> Attempt:
        """Return the attempt of the snapshot's rows; where several attempts count, the last."""
        return max(self.attempts(), key=lambda attempt: attempt.place, default=Attempt())

    def attempts(self) -> frozenset[Attempt]:
        """Return the attempts of the snapshot's rows."""
        return frozenset(portion.attempt for portion in self.of(Kind.SNAPSHOT))

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

    def unplaced_end(self, *, applied: bool) -> int | None:
        """Return the END of a transaction behind others whose rows do not say what is before them.

        The first transaction of all needs no such place. None: there is no other one.

        Args:
            applied: Whether rows of a transaction were applied before the window.
        """
        unplaced = max(_known_offsets(p.unplaced_end for p in self.portions), default=None)
        first = min(_known_offsets(p.first_end for p in self.portions), default=None)
        return unplaced if applied or first != unplaced else None

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


def contents(summaries: Iterable[Row]) -> Contents:
    """Return what a window holds, from ``summary.summarise``; the batches do not matter."""
    portions: dict[tuple[object, ...], Portion] = {}
    for row in summaries:
        portion = _portion(row)
        place = (portion.where, portion.collection, portion.kind, portion.attempt)
        other = portions.get(place)
        portions[place] = portion if other is None else _joined(portion, other)
    return Contents(tuple(portions.values()))


def _portion(row: Row) -> Portion:
    return Portion(
        TopicPartition(row["topic"], row["partition"]),
        row["collection"] or "",
        row["kind"],
        records=row["records"],
        first_offset=row["first_offset"],
        highest=row["high"] or "",
        source_ms=row["source_ms"] or 0,
        marks=frozenset(row["marks"]),
        tags=frozenset(map(bytes, (*row["value_tags"], *row["key_tags"]))),
        last_offset=row["last_offset"],
        first_ms=row["first_ms"] or 0,
        firsts=row["firsts"],
        attempt=Attempt(row["run"], row["place"] or ""),
        unended=RowWithoutEnd(*row["unended"]) if row["unended"] else None,
        first_new=row["first_new"],
        first_end=row["first_end"],
        unplaced_end=row["unplaced_end"],
    )


def _joined(one: Portion, other: Portion) -> Portion:
    """Return two portions of one place as one."""
    both = (one, other)
    return replace(
        one,
        records=one.records + other.records,
        first_offset=min(part.first_offset for part in both),
        highest=max(part.highest for part in both),
        source_ms=max(part.source_ms for part in both),
        marks=one.marks | other.marks,
        tags=one.tags | other.tags,
        last_offset=max(part.last_offset for part in both),
        first_ms=min((part.first_ms for part in both if part.first_ms), default=0),
        firsts=one.firsts + other.firsts,
        unended=min((part.unended for part in both if part.unended), default=None),
        first_new=min(_known_offsets(part.first_new for part in both), default=None),
        first_end=min(_known_offsets(part.first_end for part in both), default=None),
        unplaced_end=max(_known_offsets(part.unplaced_end for part in both), default=None),
    )


def _known_offsets(offsets: Iterable[int | None]) -> Iterable[int]:
    """Return the offsets that are known."""
    return (offset for offset in offsets if offset is not None)
