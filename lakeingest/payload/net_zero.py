"""Net-zero rows: rows of keyless tables that a transaction deletes as often as it creates them.

Such a row is after the transaction as it was before. Rejected: to leave it out of the merge
payload. That is right once, but wrong if part of the transaction comes again (a connector resumes
in its middle, or a window ends there): a create alone would bring the row back, a delete alone
would take it away. So the row gets the last place of the transaction, in either state, and a
redelivered change finds it there. The batch's changes below the transaction, and then the table,
say whether the row exists. The step is planned only where a batch has such rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from lakeingest.frame_schemas import MetadataColumns
from lakeingest.named import all_named

NET_ZERO = "k"
"""Operation that ``plan.keyless`` gives a net-zero row, until ``resolve_net_zero`` replaces it."""


def net_zero_rows(decoded: DataFrame) -> DataFrame:
    """Select the net-zero rows of the frame that ``plan.keyless`` decodes."""
    return decoded.where(F.col("op") == NET_ZERO)


def resolve_net_zero(
    decoded: DataFrame, table: DataFrame | None, key: Sequence[str], names: MetadataColumns
) -> DataFrame:
    """Turn each net-zero row into a create or a delete: the state that the row had before.

    Args:
        decoded: As ``fold.fold_rows`` takes it.
        table: The table before the batch, above the newest truncate; at least its rows of these
            keys (``key_lookup``). None: the table is new.
        key: Names of its key columns.
        names: Names of the metadata columns.

    Returns:
        The same columns; no ``op`` is ``NET_ZERO``.
    """
    earlier = Window.partitionBy("key_row").orderBy("position")
    earlier = earlier.rowsBetween(Window.unboundedPreceding, -1)
    is_net_zero = F.col("op") == NET_ZERO
    exists = F.when(~is_net_zero, F.col("op") != "d")
    with_state = decoded.withColumn("_was", F.last(exists, ignorenulls=True).over(earlier))
    existed = F.coalesce(F.col("_was"), F.lit(False))
    if table is not None:
        stored = table.where(~F.col(names.deleted)).select(
            F.struct(*all_named(key)).alias("_stored")
        )
        with_state = with_state.join(stored, F.col("key_row") == F.col("_stored"), "left")
        existed = F.coalesce(F.col("_was"), F.col("_stored").isNotNull())
    op = F.when(is_net_zero, F.when(existed, "c").otherwise("d")).otherwise(F.col("op"))
    return with_state.withColumn("op", op).select(*decoded.columns)
