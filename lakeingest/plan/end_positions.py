"""Positions of ENDs: from their ids, or from the rows of their transactions."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lakeingest.envelope.change import FAMILIES
from lakeingest.plan.spec import PipelineSpec
from lakeingest.position import COMMIT_WIDTH, COMPONENT_WIDTH, EPOCH_WIDTH, after, component
from lakeingest.transaction import completeness


def all_positions_from_rows(spec: PipelineSpec) -> bool:
    """Return whether the rows of its transaction give every END its position."""
    return FAMILIES[spec.connector].end_position is None


def some_positions_from_rows(spec: PipelineSpec) -> bool:
    """Return whether the rows of its transaction give some END its position (``placed``)."""
    return all_positions_from_rows(spec) or bool(epochs_in_file_order(spec))


def epochs_in_file_order(spec: PipelineSpec) -> list[int]:
    """Return the numbers of the epochs whose positions are places in a file of the log."""
    return [epoch.number for epoch in spec.epochs if epoch.in_file_order]


def with_positions_from_rows(
    ends: DataFrame, window: DataFrame, spec: PipelineSpec, frontier: str
) -> DataFrame:
    """Give ENDs their position from the rows of their transactions, where ids do not give it.

    The positions of a transaction's rows share the leading component: its commit. In file order,
    the commit is that of the last row. An END lies above all positions with its commit. The offset
    of END ends its position, so ENDs with the same commit differ. An END without rows gets the
    commit of the END before it: it has no rows that count, or it waits for them. One that counts
    rows is not below the frontier, though ENDs that come again are: its rows may be new. One that
    has come before (``spec.ends_again``) gets the frontier itself.

    Args:
        ends: As from ``window_boundaries``; open transactions have no position.
        window: ``CHANGE``: all rows of the transactions so far.
        spec: Pipeline settings.
        frontier: Position of the last END that was released; empty: none was.
    """
    last_rows = (
        completeness.transactional(window)
        .groupBy("transaction_key")
        .agg(F.max("position").alias("_reached"))
    )
    before = Window.orderBy("end_offset").rowsBetween(Window.unboundedPreceding, 0)
    lowest = frontier[:COMMIT_WIDTH] or after(spec.epoch, 0)
    commit_of_end = F.substring("_reached", 1, COMMIT_WIDTH)
    commit = F.coalesce(
        F.last(F.when(~F.col("open"), commit_of_end), ignorenulls=True).over(before),
        F.lit(lowest),
    )
    awaits_rows = commit_of_end.isNull() & (F.size("collections") > 0)
    commit = F.when(awaits_rows, F.greatest(commit, F.lit(lowest))).otherwise(commit)
    by_rows, commit = _ends_by_rows(spec, commit)
    above = F.concat(commit, F.lit(_ABOVE_ROWS), component(F.col("end_offset")))
    is_again = F.col("end_offset").isin(*spec.ends_again)
    place = F.when(is_again, F.lit(frontier)).otherwise(above)
    readable = (F.col("end_position") != "") & ~F.col("open")
    return (
        ends.join(last_rows, "transaction_key", "left")
        .withColumn(
            "end_position",
            F.when(readable & by_rows, place).otherwise(F.col("end_position")),
        )
        .select(*ends.columns)
    )


def _ends_by_rows(spec: PipelineSpec, commit: Column) -> tuple[Column, Column]:
    """Return which ENDs get their position from rows, and the commit of these ENDs.

    In file order, an END without rows is not below its epoch, though the END before it may be.
    """
    if all_positions_from_rows(spec):
        return F.lit(True), commit
    by_rows, commit_of_end = F.lit(False), commit
    for number in epochs_in_file_order(spec):
        first = after(number, 0)
        inside = F.startswith(F.col("end_position"), F.lit(first[: EPOCH_WIDTH + 1]))
        by_rows = by_rows | inside
        commit_of_end = F.when(inside, F.greatest(commit, F.lit(first))).otherwise(commit_of_end)
    return by_rows, commit_of_end


def without_open_transactions(boundaries: DataFrame) -> DataFrame:
    """Keep the transactions that are over."""
    return boundaries.where(~F.col("open"))


def position_without_offset(end_position: str) -> str:
    """Return the part of an END's position that is the same when the END is redelivered."""
    return end_position[:-COMPONENT_WIDTH] if is_placed(end_position) else end_position


def release_limit(frontier: str) -> str:
    """Return the position below which every row's transaction was released.

    Args:
        frontier: Position of the last END that was released. If rows gave this position, another
            transaction with the same commit may follow.
    """
    return frontier[:COMMIT_WIDTH] if is_placed(frontier) else frontier


def is_placed(end_position: str) -> bool:
    """Return whether rows gave an END its position."""
    return end_position.startswith(_ABOVE_ROWS, COMMIT_WIDTH)


UNPLACED = "?"
"""Position of an END whose id gives none, until its rows do."""

_ABOVE_ROWS = "G"
"""Sorts above every digit."""
