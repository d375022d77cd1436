"""Which unreadable records hold the log back, and which were sent again.

A record that cannot be read may be any change. Its neighbours in the partition say where in the
source's log it lies: behind all rows before it, and at or before the next row that goes further.
So its partition counts as read up to the last row before it, no further (``cut.read_past``). The
rejected way is to wait for the transaction that lacks a row: nobody counts rows of a snapshot, and
a count may be too low.

The record was sent again where a later record of its partition closes the gap:

* a row that is there for the first time, lies in the gap, and arrived behind rows of later
  transactions: nothing but a record sent again comes so late;
* the next row that goes further, if it has the same record key. That may also be the key's next
  change. The transaction of a row that is then missing lacks it by END's count; a row that no
  transaction counts is replaced by a change that leaves no column out;
* while the initial snapshot is read and no streamed row lies before the record, it may be a
  snapshot row: a later snapshot row with the same record key.

Records without a key are recognised by the first way only.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lakeingest.frame_schemas import Kind

UNREADABLE = (Kind.MALFORMED, Kind.UNKNOWN)
"""Kinds of records that may be changes and cannot be applied."""

_PLACE = ("topic", "partition")
_SEEN = (Kind.ROW, Kind.TRUNCATE, Kind.SNAPSHOT, *UNREADABLE)


def holding(changes: DataFrame, released: str, *, initial: bool) -> DataFrame:
    """Find the unreadable records that no later record replaces.

    Args:
        changes: ``CHANGE`` of whole partitions of a window.
        released: Position below which every transaction was released; empty: nothing tells.
        initial: Whether the initial snapshot was not released yet.

    Returns:
        One row per partition: ``topic``, ``partition``, ``records`` (how many), and of the first
        one ``first`` (struct of ``offset``, ``reached``: highest position of a streamed row before
        it, empty if there is none, ``kind``, ``op``).
    """
    rows = _with_neighbours(changes.where(F.col("kind").isin(*_SEEN)))
    unreadable = F.col("kind").isin(*UNREADABLE)
    bad = rows.where(unreadable).withColumn("replaced", _replaced(initial=initial))
    late = rows.where(
        (F.col("nth") == 1)
        & (F.col("position") < F.col("reached"))
        & (F.col("position") >= F.lit(released))
    ).select(
        F.col("topic").alias("_topic"),
        F.col("partition").alias("_partition"),
        F.col("offset").alias("_at"),
        F.col("position").alias("_place"),
        F.col("hash").alias("_hash"),
    )
    gap = (*_PLACE, "reached", "following")
    same = (F.col("_topic") == F.col("topic")) & (F.col("_partition") == F.col("partition"))
    inside = F.col("_place").between(F.col("reached"), F.col("following"))
    if not (initial or released):
        # Where the window begins with the record, an old row that comes again lies in the gap, too.
        inside = inside & ((F.col("reached") != "") | (F.col("_hash") == F.col("hash")))
    closed = (
        bad.join(late, same & (F.col("_at") > F.col("offset")) & inside, "left")
        .groupBy(*gap, "offset", "kind", "op", "replaced")
        .agg(F.count("_at").alias("late"))
    )
    open_ones = F.count_if(~F.col("replaced")).over(Window.partitionBy(*gap))
    return (
        closed.withColumn("open", open_ones)
        .where(~F.col("replaced") & (F.col("late") < F.col("open")))
        .groupBy(*_PLACE)
        .agg(
            F.count("*").alias("records"),
            F.min(F.struct("offset", "reached", "kind", "op")).alias("first"),
        )
    )


def _with_neighbours(rows: DataFrame) -> DataFrame:
    """Add what lies before and behind each record of its partition.

    ``reached``: highest position of a streamed row before it; ``following``: position of the next
    row that goes further, and ``following_key``: a hash of its key where it is one (null else);
    ``again_at``: offset of the last snapshot row with its key; ``nth``: 1 where no record before it
    is the same row of the source's log.
    """
    here = Window.partitionBy(*_PLACE).orderBy("offset")
    before = here.rowsBetween(Window.unboundedPreceding, -1)
    behind = here.rowsBetween(1, Window.unboundedFollowing)
    of_key = Window.partitionBy(*_PLACE, "hash")
    streamed = F.when(F.col("kind").isin(Kind.ROW, Kind.TRUNCATE), F.col("position"))
    snapshot = F.when(F.col("kind") == Kind.SNAPSHOT, F.col("offset"))
    further = F.col("streamed") > F.col("reached")
    whole = ~F.coalesce(F.col("may_be_masked"), F.lit(False))
    stands_for = F.when(whole | F.col("transaction_key").isNotNull(), F.col("hash"))
    return (
        rows.withColumn("hash", F.when(F.col("key").isNotNull(), F.xxhash64("key")))
        .withColumn("streamed", streamed)
        .withColumn("reached", F.coalesce(F.max("streamed").over(before), F.lit("")))
        .withColumn("next", F.when(further, F.struct("streamed", stands_for.alias("hash"))))
        .withColumn("next", F.first("next", ignorenulls=True).over(behind))
        .withColumn("again_at", F.max(snapshot).over(of_key))
        .withColumn(
            "nth",
            F.row_number().over(Window.partitionBy(*_PLACE, "kind", "identity").orderBy("offset")),
        )
        .select(
            *_PLACE,
            "offset",
            "kind",
            "op",
            "hash",
            "reached",
            "again_at",
            "nth",
            F.col("streamed").alias("position"),
            F.col("next.streamed").alias("following"),
            F.col("next.hash").alias("following_key"),
        )
    )


def _replaced(*, initial: bool) -> Column:
    """Condition: a record with the same key stands for it."""
    by_row = F.col("following_key") == F.col("hash")
    by_snapshot_row = F.col("hash").isNotNull() & (F.col("again_at") > F.col("offset"))
    may_be_snapshot = (F.col("reached") == "") & F.lit(initial)
    found = F.when(may_be_snapshot, by_snapshot_row).otherwise(by_row)
    return F.coalesce(found, F.lit(False))
