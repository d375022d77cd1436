"""What each batch of a window holds of each partition and table, and one sample of its shape.

The newest row of each partition travels here so that the driver can read its *field names* (and
JSON types or Connect schema) from it. Its values are never logged or kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeingest.decode.wire import WireFormat
from lakeingest.event_columns import EVENT
from lakeingest.frame_schemas import Kind
from lakeingest.source.contract import TopicPartition


@dataclass(frozen=True)
class BatchStats:
    """Changes of one batch, partition and collection.

    Attributes:
        batch: Index in the window; null for what stays pending.
        where: Topic and partition.
        collection: Source table.
        rows: Row and snapshot changes.
        first_offset: Lowest offset.
        low: Lowest position of a row.
        high: Highest position of a row.
        floor: Highest position of a truncate; empty when there is none.
        source_ms: Newest commit time at the source (milliseconds).
        masked: Rows that may leave a column out.
        moved: Of those, rows that a primary-key change created.
        unpaired: Of those, rows without the header that names the key they had before.
        relocated: Rows that a primary-key change created, masked or not.
        deletes: Whether some row deletes.
        keyless: Rows whose record has no key.
        size: Bytes of the rows.
        sample: Newest row (deletes last), as it came; null when there is none.
        sample_key: Key of some row, as it came; null when none has one.
        value_tags: What names the schemas of the rows, where something does.
        key_tags: The same of their keys.
        gone_at: Bits of the places of rows that delete, of a run without a name (``_bit``).
        come_at: The same of rows that create, and name no key that the row had before.
        floor_event: RFC-39's columns of the truncate at ``floor``, where they are wanted.
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

    def doubted(self) -> BatchStats:
        """Return the share of a table where any row may leave a column out without a mark."""
        return replace(self, masked=self.rows, moved=self.relocated)

    def any_moved(self) -> BatchStats:
        """Return the share of a table of which an update, too, may change the key."""
        return replace(self, moved=self.masked)


def may_move_without_header(batch_stats: Sequence[BatchStats]) -> bool:
    """Return whether a table's rows may have changed keys without a header that says so.

    Where a transform takes the headers off, the name of the run goes with them. Both halves of a
    key change have one place in the log; few bits of it show that most batches have none.
    """
    gone = reduce(or_, (stats.gone_at for stats in batch_stats), 0)
    come = reduce(or_, (stats.come_at for stats in batch_stats), 0)
    return gone & come != 0


def _bit() -> Column:
    """Return one bit of 63, by the place of the row in the log."""
    return F.expr("shiftleft(1L, cast(pmod(xxhash64(position), 63) as int))")


def batch_stats(batched: DataFrame, format_: WireFormat) -> list[BatchStats]:
    """Summarise a window whose changes have their ``batch`` (``plan.window.in_batches``)."""
    is_row = F.col("kind").isin(Kind.ROW, Kind.SNAPSHOT)
    truncate = F.col("kind") == Kind.TRUNCATE
    waiting = F.col("kind").isin(Kind.ROW, Kind.SNAPSHOT, Kind.TRUNCATE)
    # A delete has no row after it; it is a sample only where there is nothing else.
    newest = F.struct(F.col("op") != "d", F.col("offset"))
    # Only a changed key creates a row and leaves values out.
    moved = F.col("may_be_masked") & (F.col("op") == "c")
    unnamed = is_row & F.col("incarnation").isNull() & F.col("transaction_key").isNotNull()
    came = unnamed & (F.col("op") == "c") & F.col("moved_from").isNull()
    at_floor = F.max_by(EVENT, F.when(truncate, F.col("position"))).alias(EVENT)
    events = [at_floor] if EVENT in batched.columns else []
    rows = (
        batched.where(waiting)
        .groupBy("batch", "topic", "partition", "collection")
        .agg(
            F.count_if(is_row).alias("rows"),
            F.min("offset").alias("first_offset"),
            F.min(F.when(is_row, F.col("position"))).alias("low"),
            F.max(F.when(is_row, F.col("position"))).alias("high"),
            F.max(F.when(truncate, F.col("position"))).alias("floor"),
            F.max("source_ms").alias("source_ms"),
            F.count_if(is_row & F.col("may_be_masked")).alias("masked"),
            F.count_if(is_row & moved).alias("moved"),
            F.count_if(is_row & moved & F.col("moved_from").isNull()).alias("unpaired"),
            F.count_if(is_row & F.col("moved_from").isNotNull()).alias("relocated"),
            F.bit_or(F.when(unnamed & (F.col("op") == "d"), _bit())).alias("gone_at"),
            F.bit_or(F.when(came, _bit())).alias("come_at"),
            # A set, and not a count: with it Spark groups in memory instead of sorting the window.
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
            F.collect_set(F.when(is_row, format_.schema_tag(F.col("value")))).alias("value_tags"),
            F.collect_set(F.when(is_row, format_.key_tag(F.col("key")))).alias("key_tags"),
            *events,
        )
        .collect()
    )
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
            row[EVENT].asDict() if events and row[EVENT] else {},
            row["relocated"],
            row["gone_at"] or 0,
            row["come_at"] or 0,
        )
        for row in rows
    ]


def _octets(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)


def first_pending(found: Sequence[BatchStats], released: int) -> dict[TopicPartition, int]:
    """Return the lowest offset per partition that no batch up to ``released`` holds."""
    lowest: dict[TopicPartition, int] = {}
    for stats in found:
        if stats.batch is None or stats.batch > released:
            known = lowest.get(stats.where, stats.first_offset)
            lowest[stats.where] = min(known, stats.first_offset)
    return lowest
