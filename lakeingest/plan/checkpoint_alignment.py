"""Find where checkpoints that count offsets lie between source transactions, as expressions.

A checkpoint lies *amid* transactions: some rows of one transaction are before it and some behind
it, in one partition or in several. So each change is marked as *before* or behind its partition's
checkpoint. The result is how far the log is wholly before all checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakeingest.frame_schemas import Kind
from lakeingest.transaction.completeness import with_end_offset

_STREAMED = (Kind.ROW, Kind.TRUNCATE)


def mark_before_checkpoint(
    changes: DataFrame, checkpoints: Mapping[tuple[str, int], int]
) -> DataFrame:
    """Mark each change (``CHANGE``) with ``before``: it is before its partition's checkpoint.

    Args:
        changes: Changes of these partitions, and of no other.
        checkpoints: Topic and partition to the next offset.
    """
    before = reduce(
        or_,
        (
            (F.col("topic") == topic)
            & (F.col("partition") == partition)
            & (F.col("offset") < offset)
            for (topic, partition), offset in checkpoints.items()
        ),
        F.lit(False),
    )
    return changes.withColumn("before", before)


def partition_summaries(sided: DataFrame) -> DataFrame:
    """Summarise each partition: one row of ``topic``, ``partition`` and these columns.

    ``first``: lowest position of a streamed change behind the checkpoint; ``loading``: whether a
    row of the initial snapshot is behind it; ``mark``: snapshot mark of the newest snapshot row;
    ``streamed``: whether some change is a streamed one.
    """
    streamed = F.col("kind").isin(*_STREAMED)
    snapshot = F.col("kind") == Kind.SNAPSHOT
    behind = ~F.col("before")
    return sided.groupBy("topic", "partition").agg(
        F.min(F.when(behind & streamed, F.col("position"))).alias("first"),
        F.max(behind & snapshot).alias("loading"),
        F.max_by("snapshot", F.when(snapshot, F.col("offset"))).alias("mark"),
        F.max(streamed).alias("streamed"),
    )


def last_whole_end(ends: DataFrame, first: str | None, margin_seconds: int | None) -> DataFrame:
    """Find the last END up to which every transaction counts as wholly before the checkpoints.

    Columns: ``end_offset``, ``end_position``, ``committed_at``; no row: there is no such END.

    Args:
        ends: ``BOUNDARY``.
        first: Lowest position behind a checkpoint; None: no change is behind one.
        margin_seconds: How long rows may arrive after their END (seconds); None: none arrives late.
    """
    uncertain = F.lit(False)
    if first is not None:
        uncertain = uncertain | (F.col("end_position") > F.lit(first))
    if margin_seconds is not None:
        age = F.col("_newest").cast("double") - F.col("written_at").cast("double")
        uncertain = uncertain | (age < margin_seconds)
    with_newest = ends.crossJoin(ends.agg(F.max("written_at").alias("_newest")))
    stop = with_newest.agg(F.min(F.when(uncertain, F.col("end_offset"))).alias("_stop"))
    certain_ends = ends.crossJoin(F.broadcast(stop)).where(
        F.col("_stop").isNull() | (F.col("end_offset") < F.col("_stop"))
    )
    last = certain_ends.orderBy(F.col("end_offset").desc()).limit(1)
    return last.select("end_offset", "end_position", "committed_at")


def last_below(sided: DataFrame, position: str) -> DataFrame:
    """Find the last change before the checkpoint with a lower position, per partition.

    Columns: ``topic``, ``partition``, ``offset`` (NULL: there is none).
    """
    below = F.col("before") & (F.col("position") < F.lit(position))
    return sided.groupBy("topic", "partition").agg(
        F.max(F.when(below, F.col("offset"))).alias("offset")
    )


def partly_applied(sided: DataFrame, ends: DataFrame, position: str) -> DataFrame:
    """Find the transactions above ``position`` that have a change before its checkpoint.

    One row: ``through`` and ``end_position`` of the last one (NULL: there is none), and
    ``unended``: how many of these changes belong to a transaction without an END.
    """
    streamed_before = (
        F.col("before")
        & F.col("kind").isin(*_STREAMED)
        & F.col("transaction_key").isNotNull()
        & (F.col("position") >= F.lit(position))
    )
    with_end = with_end_offset(
        sided.where(streamed_before), ends.where(F.col("end_position") > F.lit(position))
    )
    last = with_end.agg(
        F.max("end_offset").alias("through"),
        F.sum(F.col("end_offset").isNull().cast("bigint")).alias("unended"),
    )
    end_positions = ends.select("end_offset", "end_position")
    return last.join(
        F.broadcast(end_positions), F.col("through") == F.col("end_offset"), "left"
    ).select("through", "unended", "end_position")
