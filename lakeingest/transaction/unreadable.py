"""Find the unreadable records that hold the log back: those that no later record replaces.

An unreadable record may be any change. Its neighbours in the partition say where it lies in the
source's log: behind all rows before it, and at or before the next row that goes further. So its
partition counts as read up to the last row before it, no further (``cut.read_past``). Rejected: to
wait for the transaction that lacks a row. No transaction counts the rows of a snapshot, and a count
may be too low.

A later record of its partition shows that the record was sent again:

* a row that appears for the first time, lies in the gap, and arrives behind rows of later
  transactions: only a record that is sent again comes so late;
* the next row that goes further, if it has the same record key. It may also be the next change of
  the key. If that leaves a row missing, END's count shows that its transaction lacks it; a row that
  no transaction counts is replaced by a change that omits no column;
* a later snapshot row with the same record key, while the initial snapshot is read and no streamed
  row lies before the record: the record may be a snapshot row.

Only the first way recognises records without a key.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lakeingest.frame_schemas import Kind

UNREADABLE = (Kind.MALFORMED, Kind.UNKNOWN)
"""Kinds of records that may be changes and cannot be applied."""

_PLACE = ("topic", "partition")
_KINDS = (Kind.ROW, Kind.TRUNCATE, Kind.SNAPSHOT, *UNREADABLE)


def unreplaced_records(
    changes: DataFrame, released: str, *, initial: bool, counted: bool = True
) -> DataFrame:
    """Find the unreadable records that no later record replaces.

    Args:
        changes: ``CHANGE`` of whole partitions of a window.
        released: Position below which every transaction is released; empty: not known.
        initial: Whether the initial snapshot is not released yet.
        counted: Whether a transaction that lacks a row is noticed. Else the next change of its key
            does not replace a record: the record may be of another transaction.

    Returns:
        One row per partition: ``topic``, ``partition``, ``records`` (their number), and ``first``,
        the first of them (struct of ``offset``, ``reached``: highest position of a streamed row
        before it, empty if there is none, ``kind``, ``op``).
    """
    rows = _with_neighbours(changes.where(F.col("kind").isin(*_KINDS)), counted=counted)
    unreadable = F.col("kind").isin(*UNREADABLE)
    bad = rows.where(unreadable).withColumn("replaced", _is_replaced(initial=initial))
    late_rows = rows.where(
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
    same_partition = (F.col("_topic") == F.col("topic")) & (
        F.col("_partition") == F.col("partition")
    )
    in_gap = F.col("_place").between(F.col("reached"), F.col("following"))
    if not (initial or released):
        # If the window begins with the record, a redelivered old row lies in the gap, too.
        in_gap = in_gap & ((F.col("reached") != "") | (F.col("_hash") == F.col("hash")))
    with_late = (
        bad.join(late_rows, same_partition & (F.col("_at") > F.col("offset")) & in_gap, "left")
        .groupBy(*gap, "offset", "kind", "op", "replaced")
        .agg(F.count("_at").alias("late"))
    )
    open_ones = F.count_if(~F.col("replaced")).over(Window.partitionBy(*gap))
    return (
        with_late.withColumn("open", open_ones)
        .where(~F.col("replaced") & (F.col("late") < F.col("open")))
        .groupBy(*_PLACE)
        .agg(
            F.count("*").alias("records"),
            F.min(F.struct("offset", "reached", "kind", "op")).alias("first"),
        )
    )


def _with_neighbours(rows: DataFrame, *, counted: bool) -> DataFrame:
    """Add the neighbours before and behind each record of its partition.

    ``reached``: highest position of a streamed row before it. ``following``: position of the next
    row that goes further. ``following_key``: hash of that row's key, if the row can replace the
    record: it omits no column, or it has a transaction (else NULL). ``again_at``: offset of the
    last snapshot row with the record's key. ``nth``: 1 for the first record of a row of the
    source's log.
    """
    here = Window.partitionBy(*_PLACE).orderBy("offset")
    before = here.rowsBetween(Window.unboundedPreceding, -1)
    behind = here.rowsBetween(1, Window.unboundedFollowing)
    of_key = Window.partitionBy(*_PLACE, "hash")
    streamed = F.when(F.col("kind").isin(Kind.ROW, Kind.TRUNCATE), F.col("position"))
    snapshot = F.when(F.col("kind") == Kind.SNAPSHOT, F.col("offset"))
    goes_further = F.col("streamed") > F.col("reached")
    omits_nothing = ~F.coalesce(F.col("may_be_masked"), F.lit(False))
    replaces = omits_nothing | F.col("transaction_key").isNotNull()
    replacing_hash = F.when(replaces & F.lit(counted), F.col("hash"))
    return (
        rows.withColumn("hash", F.when(F.col("key").isNotNull(), F.xxhash64("key")))
        .withColumn("streamed", streamed)
        .withColumn("reached", F.coalesce(F.max("streamed").over(before), F.lit("")))
        .withColumn(
            "next", F.when(goes_further, F.struct("streamed", replacing_hash.alias("hash")))
        )
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


def _is_replaced(*, initial: bool) -> Column:
    """Return whether a record with the same key replaces it."""
    by_row = F.col("following_key") == F.col("hash")
    by_snapshot_row = F.col("hash").isNotNull() & (F.col("again_at") > F.col("offset"))
    may_be_snapshot = (F.col("reached") == "") & F.lit(initial)
    is_replaced = F.when(may_be_snapshot, by_snapshot_row).otherwise(by_row)
    return F.coalesce(is_replaced, F.lit(False))
