"""Which batch of a window a change belongs to: one condition, whether it lies behind a cut."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType

from lakeingest.cast import null_of
from lakeingest.engine.known_columns import Addition, Removal, Steps, made_once
from lakeingest.frame_schemas import END, Kind
from lakeingest.transaction.completeness import with_end_offset
from lakeingest.transaction.cut import Cut, End

SNAPSHOT_BATCH = 0
"""Index of the window's batch that holds the initial snapshot; cuts are numbered from 1."""


def in_batches(
    window: DataFrame,
    ends: DataFrame,
    cuts: Sequence[Cut],
    frontier_position: str,
    *,
    snapshot: bool,
) -> DataFrame:
    """Give each change of the window the index of its batch (``batch``; NULL: it stays pending).

    Rows of a transaction go with their END. Rows without a transaction (incremental snapshots,
    MySQL's TRUNCATE) go with the first cut above their position. Rows of transactions that were
    released before are redelivered: they go with the first batch, where they change nothing. So do
    rows of an initial snapshot that was published before.

    Args:
        window: ``CHANGE``.
        ends: The window's boundaries.
        cuts: Its batches, in commit order.
        frontier_position: Position above everything that was released before.
        snapshot: Whether the initial snapshot is complete and forms batch 0.
    """
    places = (F.struct(F.lit(one.last_offset), F.lit(one.position)) for one in cuts)
    cut_places = F.array(*places).cast("array<struct<last_offset:bigint,position:string>>")
    is_released = F.col("position") < F.lit(frontier_position)
    placed = with_end_offset(window, ends).withColumns(
        {"_cuts": cut_places, "_is_released": is_released}
    )
    return _number(snapshot=snapshot).of(placed)


@made_once
def _number(*, snapshot: bool) -> Steps:
    """Return the number of a change's batch, over ``_cuts`` and ``_is_released``."""
    is_released = F.col("_is_released")

    def is_behind(cut: Column) -> Column:
        return _is_behind(cut["last_offset"], cut["position"], is_released)

    index = F.size(F.filter("_cuts", is_behind)) + 1
    has_place = _is_behind(F.lit(0), F.lit(""), is_released).isNotNull()
    has_batch = _is_applied(snapshot=snapshot) & has_place
    number = F.when(has_batch & (index <= F.size("_cuts")), index)
    if snapshot:
        in_snapshot = F.col("kind") == Kind.SNAPSHOT
        number = F.when(in_snapshot, F.lit(SNAPSHOT_BATCH)).otherwise(number)
    return Steps(Addition({"batch": number}), Removal("_cuts", "_is_released"))


def without_batch(window: DataFrame) -> DataFrame:
    """Let each change of a window stay pending: no batch of it is known yet."""
    return window.withColumn("batch", null_of(IntegerType()))


def of_batch(
    window: DataFrame, cuts: Sequence[Cut], index: int, frontier_position: str, *, snapshot: bool
) -> DataFrame:
    """Keep the changes of one batch: those that ``in_batches`` gives ``index``.

    This is a plain range condition. ``in_batches`` compares every row with every cut, per table.

    Args:
        window: ``CHANGE`` with ``end_offset``.
        cuts: The window's batches, in commit order.
        index: Index of the batch.
        frontier_position: Position above everything that was released before the window.
        snapshot: Whether the initial snapshot forms batch 0.
    """
    if index == SNAPSHOT_BATCH:
        return window.where(F.col("kind") == Kind.SNAPSHOT)

    is_released = F.col("position") < F.lit(frontier_position)

    def is_behind(cut: Cut) -> Column:
        return _is_behind(F.lit(cut.last_offset), F.lit(cut.position), is_released)

    # Start behind the last END of the batch before it, not at the batch's own first END: so no END
    # lies between two batches.
    behind_others = is_behind(cuts[index - 2]) if index > 1 else F.lit(True)
    in_range = behind_others & ~is_behind(cuts[index - 1])
    return window.where(in_range & _is_applied(snapshot=snapshot))


def with_ends(changes: DataFrame, ends: Sequence[End], applied: Mapping[str, int]) -> DataFrame:
    """Give each change of a batch the ``END`` of the transaction whose version gets it.

    Rows without a transaction of the batch (incremental snapshots, redelivered rows) go with the
    first one above their position whose version the table lacks, or else with the last one. A later
    one would be wrong: a transaction between them may need the row, for a value that it leaves out.

    Args:
        changes: ``CHANGE`` of one batch, with ``end_offset``.
        ends: The batch's ENDs, in commit order.
        applied: Collection to the END up to which its table has all transactions, if that is a
            later one than the frontier: their rows are left out.
    """
    offsets, first_lacking = [end.offset for end in ends], F.lit(0)
    for collection, end in applied.items():
        is_of_table = F.col("collection") == collection
        is_applied = is_of_table & (F.col("end_offset") <= end)
        changes = changes.where(~F.coalesce(is_applied, F.lit(False)))
        first_lacking = F.when(is_of_table, bisect_right(offsets, end)).otherwise(first_lacking)
    below = F.size(F.filter(_literal(end.position for end in ends), _is_not_above))
    index = F.least(F.greatest(below, first_lacking), F.lit(len(ends) - 1))
    first_above = F.get(_literal(offsets).cast("array<bigint>"), index)
    return changes.withColumn(END, F.coalesce("end_offset", first_above))


def _is_not_above(position: Column) -> Column:
    return position <= F.col("position")


def _literal(values: Iterable[object]) -> Column:
    """Return an array of texts without commas as one literal: hundreds take long to plan."""
    return F.split(F.lit(",".join(map(str, values))), ",")


def _is_behind(last_offset: Column, position: Column, is_released: Column) -> Column:
    """Return whether a change lies behind a cut; NULL: its transaction has no END yet.

    A row of a transaction that was released before lies behind no cut.
    """
    return (
        F.when(F.col("end_offset").isNotNull(), F.col("end_offset") > last_offset)
        .when(is_released, F.lit(False))
        .when(F.col("transaction_key").isNull(), F.col("position") >= position)
    )


@made_once
def _is_applied(*, snapshot: bool) -> Column:
    """Return whether a change belongs to a batch of transactions.

    Args:
        snapshot: Whether the rows of the initial snapshot are a batch of their own.
    """
    kinds = (Kind.ROW, Kind.TRUNCATE) if snapshot else (Kind.ROW, Kind.TRUNCATE, Kind.SNAPSHOT)
    return F.col("kind").isin(*kinds)
