"""Summarise each batch of a window per partition and table, with one sample row.

The driver collects the newest row of each partition and reads its *field names* (and JSON types or
Connect schema) from it. The row's values are never logged or kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeingest.decode.wire import WireFormat
from lakeingest.engine.known_columns import Filter, Selection, column, made_once
from lakeingest.event_columns import EVENT
from lakeingest.frame_schemas import Kind
from lakeingest.source.contract import TopicPartition


@dataclass(frozen=True)
class BatchStats:
    """Statistics of the changes of one batch, partition and collection.

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
        gone_at: Bits (``_bit``) of the positions of deletes in transactions without a ``runId``.
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


def _bit() -> Column:
    """Return one of 63 bits, chosen by a hash of the row's position in the log."""
    return F.expr("shiftleft(1L, cast(pmod(xxhash64(position), 63) as int))")


def batch_stats(batched: DataFrame, format_: WireFormat) -> list[BatchStats]:
    """Summarise a window whose changes have their ``batch`` (``plan.batches.in_batches``)."""
    tags = format_.schema_tag(column("value")), format_.key_tag(column("key"))
    has_event = EVENT in batched.columns
    is_change, groups, summary = _statistics(*tags, event=has_event)
    rows = summary.of_groups(is_change.of(batched), groups).collect()
    return [
        BatchStats(
            row["batch"],
            TopicPartition(row["topic"], row["partition"]),
            row["collection"] or "",
            row["rows"],
            row["first_offset"],
            row["low"] or "",
            row["high"] or "",
            row["floor"] or "",
            row["source_ms"] or 0,
            row["masked"],
            row["moved"],
            row["unpaired"],
            "d" in row["ops"],
            row["keyless"],
            row["size"] or 0,
            _octets(row["sample"]),
            _octets(row["sample_key"]),
            _octets(row["first_key"]),
            frozenset(map(bytes, row["value_tags"])),
            frozenset(map(bytes, row["key_tags"])),
            row[EVENT].asDict() if has_event and row[EVENT] else {},
            row["relocated"],
            row["gone_at"] or 0,
            row["come_at"] or 0,
        )
        for row in rows
    ]


@made_once
def _statistics(
    value_tag: Column, key_tag: Column, *, event: bool
) -> tuple[Filter, Selection, Selection]:
    """Return which records are changes, what groups them, and the statistics of a group.

    Args:
        value_tag: Tag of the schema of ``value``.
        key_tag: Tag of the schema of ``key``.
        event: Whether the window reads RFC-39's columns.
    """
    is_row = F.col("kind").isin(Kind.ROW, Kind.SNAPSHOT)
    truncate = F.col("kind") == Kind.TRUNCATE
    is_change = F.col("kind").isin(Kind.ROW, Kind.SNAPSHOT, Kind.TRUNCATE)
    # A delete has no after-image: it is the sample only where there is no other row.
    newest = F.struct(F.col("op") != "d", F.col("offset"))
    # A create omits values only if a primary-key change made it.
    key_change = F.col("may_be_masked") & (F.col("op") == "c")
    without_run = is_row & F.col("incarnation").isNull() & F.col("transaction_key").isNotNull()
    created = without_run & (F.col("op") == "c") & F.col("moved_from").isNull()
    at_floor = F.max_by(EVENT, F.when(truncate, F.col("position"))).alias(EVENT)
    summary = Selection(
        F.count_if(is_row).alias("rows"),
        F.min("offset").alias("first_offset"),
        F.min(F.when(is_row, F.col("position"))).alias("low"),
        F.max(F.when(is_row, F.col("position"))).alias("high"),
        F.max(F.when(truncate, F.col("position"))).alias("floor"),
        F.max("source_ms").alias("source_ms"),
        F.count_if(is_row & F.col("may_be_masked")).alias("masked"),
        F.count_if(is_row & key_change).alias("moved"),
        F.count_if(is_row & key_change & F.col("moved_from").isNull()).alias("unpaired"),
        F.count_if(is_row & F.col("moved_from").isNotNull()).alias("relocated"),
        F.bit_or(F.when(without_run & (F.col("op") == "d"), _bit())).alias("gone_at"),
        F.bit_or(F.when(created, _bit())).alias("come_at"),
        # A set, not a count: then Spark groups in memory and does not sort the window.
        F.collect_set(F.when(is_row, F.col("op"))).alias("ops"),
        F.count_if(is_row & F.col("key").isNull()).alias("keyless"),
        F.sum(F.octet_length("value")).alias("size"),
        F.max_by("value", F.when(is_row, newest)).alias("sample"),
        F.max_by("key", F.when(is_row & F.col("key").isNotNull(), F.col("offset"))).alias(
            "sample_key"
        ),
        F.min_by("key", F.when(is_row & F.col("key").isNotNull(), F.col("offset"))).alias(
            "first_key"
        ),
        F.collect_set(F.when(is_row, value_tag)).alias("value_tags"),
        F.collect_set(F.when(is_row, key_tag)).alias("key_tags"),
        *([at_floor] if event else ()),
    )
    groups = Selection("batch", "topic", "partition", "collection")
    return Filter(is_change), groups, summary


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
