"""Rows of keyless tables that a transaction took away as often as it made them.

They are as they were before it. To leave them out of the merge payload would be right once, and
wrong when part of the transaction comes again (a connector goes on in its middle, or a window ends
there): a create alone would bring the row back, a delete alone take it away. So the row gets the
transaction's last place, whatever it is, and what comes again finds it there. What it was is asked
of the batch, below the transaction, and then of the table; only where there are such rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from lakeingest.frame_schemas import MetadataColumns
from lakeingest.named import all_named

KEPT = "k"
"""Operation of such a row in ``plan.keyless``, until ``with_kept_rows`` knows what it was."""


def kept_rows(decoded: DataFrame) -> DataFrame:
    """Select such rows of what ``plan.keyless`` decoded."""
    return decoded.where(F.col("op") == KEPT)


def with_kept_rows(
    decoded: DataFrame,
    table: DataFrame | None,
    key: Sequence[str],
    floor: str,
    names: MetadataColumns,
) -> DataFrame:
    """Make a create or a delete of each such row.

    Args:
        decoded: As ``fold.fold_rows`` takes it.
        table: The table before the batch; null: it is new.
        key: Names of its key columns.
        floor: Position of the newest truncate; empty: none.
        names: Names of the metadata columns.

    Returns:
        The same columns; no ``op`` is ``KEPT``.
    """
    earlier = Window.partitionBy("key_row").orderBy("position")
    earlier = earlier.rowsBetween(Window.unboundedPreceding, -1)
    told = F.when(F.col("op") != KEPT, F.col("op") != "d")
    in_batch = decoded.withColumn("_was", F.last(told, ignorenulls=True).over(earlier))
    was = F.col("_was")
    if table is not None:
        live = table.where(~F.col(names.deleted) & (F.col(names.position) > F.lit(floor)))
        wanted = F.broadcast(kept_rows(decoded).select(F.col("key_row").alias("_wanted")))
        found = live.select(F.struct(*all_named(key)).alias("_stored")).join(
            wanted, F.col("_stored") == F.col("_wanted"), "left_semi"
        )
        in_batch = in_batch.join(found, F.col("key_row") == F.col("_stored"), "left")
        was = F.coalesce(was, F.col("_stored").isNotNull())
    is_kept = F.col("op") == KEPT
    there = F.coalesce(was, F.lit(False))
    return in_batch.select(
        "key_row",
        F.when(is_kept, F.when(there, "c").otherwise("d")).otherwise(F.col("op")).alias("op"),
        *(name for name in decoded.columns if name not in ("key_row", "op")),
    )
