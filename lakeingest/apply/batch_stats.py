"""What is known of each batch of a window, per partition and table, with one sample row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_

from pyspark.sql import Row

from lakeingest.event_columns import EVENT
from lakeingest.frame_schemas import Kind
from lakeingest.source.contract import TopicPartition


@dataclass(frozen=True)
class BatchStats:
    """Statistics of changes of one batch, partition, collection and schema; there may be several.

    Attributes:
        batch: Index in the window; None: the changes stay pending.
        where: Topic and partition.
        collection: Source table.
        rows: Number of row and snapshot changes.
        first_offset: Lowest offset.
        low: Lowest position of a row.
        high: Highest position of a row.
        floor: Highest position of a truncate; empty when there is none.
        source_ms: Newest commit time at the source (milliseconds).
        masked: Rows that may omit a column.
        moved: Of the masked rows, those that a primary-key change created.
        unpaired: Of the moved rows, those without the header that names their old key.
        relocated: Rows with the header that names their old key, masked or not: a primary-key
            change created them.
        deletes: Whether some row is a delete.
        keyless: Rows whose record has no key.
        size: Bytes of the rows.
        sample: Newest row (deletes last), as received; None when there is no row.
        sample_key: Key of the last row that has a key, as received; None when no row has one.
        first_key: Key of the first row that has a key, as received; None when no row has one.
        value_tags: Tags of the rows' schemas (``WireFormat.schema_tag``), where the format has
            them.
        key_tags: Tags of the keys' schemas (``WireFormat.key_tag``), where the format has them.
        gone_at: Bits (``summary.py``) of the positions of deletes in transactions without a
            ``runId``.
        come_at: Bits of the positions of creates without a ``runId`` and without an old key.
        floor_event: RFC-39's columns of the truncate at ``floor``, if the window reads them.
    """

    batch: int | None
    where: TopicPartition
    collection: str
    rows: int
    first_offset: int
    low: str
    high: str
    floor: str
    source_ms: int = 0
    masked: int = 0
    moved: int = 0
    unpaired: int = 0
    deletes: bool = False
    keyless: int = 0
    size: int = 0
    sample: bytes | None = None
    sample_key: bytes | None = None
    first_key: bytes | None = None
    value_tags: frozenset[bytes] = frozenset()
    key_tags: frozenset[bytes] = frozenset()
    floor_event: Mapping[str, object] = field(default_factory=dict)
    relocated: int = 0
    gone_at: int = 0
    come_at: int = 0

    def all_masked(self) -> BatchStats:
        """Return the statistics for a table whose rows may all omit a column without a mark."""
        return replace(self, masked=self.rows, moved=self.relocated)

    def any_relocated(self) -> BatchStats:
        """Return the statistics for a table of which any row may come from an unnamed key."""
        return replace(self, relocated=self.rows, unpaired=self.rows)

    def any_moved(self) -> BatchStats:
        """Return the statistics for a table of which an update, too, may change the key."""
        return replace(self, moved=self.masked)


def may_move_without_header(batch_stats: Sequence[BatchStats]) -> bool:
    """Return whether a table's rows may have changed keys without a header that says so.

    A transform that removes the headers removes the ``runId`` with them. The delete and the create
    of a key change have one position in the log. So where no bit is in both sets, no key changed.
    Few bits suffice to show that for most batches.
    """
    gone = reduce(or_, (stats.gone_at for stats in batch_stats), 0)
    come = reduce(or_, (stats.come_at for stats in batch_stats), 0)
    return gone & come != 0


def schema_heights(batch_stats: Iterable[BatchStats]) -> dict[bytes, str]:
    """Return the highest position of a row of each schema, by its tag."""
    heights: dict[bytes, str] = {}
    for stats in batch_stats:
        for tag in stats.value_tags:
            heights[tag] = max(stats.high, heights.get(tag, ""))
    return heights


def batch_stats(summaries: Iterable[Row]) -> list[BatchStats]:
    """Return the statistics of each batch, from ``window.summary.summarise``.

    Of each partition and table, one has a sample.
    """
    rows = [row for row in summaries if row["kind"] in _CHANGES]
    newest: dict[tuple[object, ...], Row] = {}
    for row in rows:
        place = tuple(row[name] for name in ("batch", "topic", "partition", "collection"))
        other = newest.get(place)
        if row["sampled"] and (other is None or row["sampled"] > other["sampled"]):
            newest[place] = row
    samples = {id(row) for row in newest.values()}
    return [_stats(row, has_sample=id(row) in samples) for row in rows]


_CHANGES = (Kind.ROW, Kind.SNAPSHOT, Kind.TRUNCATE)


def _stats(row: Row, *, has_sample: bool) -> BatchStats:
    where = TopicPartition(row["topic"], row["partition"])
    collection, high = row["collection"] or "", row["high"] or ""
    if row["kind"] == Kind.TRUNCATE:
        event = row.asDict().get(EVENT)
        return BatchStats(
            row["batch"],
            where,
            collection,
            rows=0,
            first_offset=row["first_offset"],
            low="",
            high="",
            floor=high,
            source_ms=row["source_ms"] or 0,
            size=row["size"] or 0,
            floor_event=event.asDict() if event else {},
        )
    return BatchStats(
        row["batch"],
        where,
        collection,
        rows=row["records"],
        first_offset=row["first_offset"],
        low=row["low"] or "",
        high=high,
        floor="",
        source_ms=row["source_ms"] or 0,
        masked=row["masked"],
        moved=row["moved"],
        unpaired=row["unpaired"],
        deletes="d" in row["ops"],
        keyless=row["keyless"],
        size=row["size"] or 0,
        sample=_octets(row["sample"]) if has_sample else None,
        sample_key=_octets(row["sample_key"]),
        first_key=_octets(row["first_key"]),
        relocated=row["relocated"],
        gone_at=row["gone_at"] or 0,
        come_at=row["come_at"] or 0,
        value_tags=frozenset(map(bytes, row["value_tags"])),
        key_tags=frozenset(map(bytes, row["key_tags"])),
    )


def _octets(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)


def first_pending(window_stats: Sequence[BatchStats], last_batch: int) -> dict[TopicPartition, int]:
    """Return, per partition, the lowest offset of the changes in no batch up to ``last_batch``."""
    lowest: dict[TopicPartition, int] = {}
    for stats in window_stats:
        if stats.batch is None or stats.batch > last_batch:
            so_far = lowest.get(stats.where, stats.first_offset)
            lowest[stats.where] = min(so_far, stats.first_offset)
    return lowest
