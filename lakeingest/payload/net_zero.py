"""Net-zero rows: rows of keyless tables that a transaction deletes as often as it creates them.

Such a row is after the transaction as it was before. Rejected: to leave it out of the merge
payload. That is right once, but wrong if part of the transaction comes again (a connector resumes
in its middle, or a window ends there): a create alone would bring the row back, a delete alone
would take it away. So the row gets the last place of the transaction, in either state, and a
redelivered change finds it there. The batch's changes between the table's row and the transaction,
and then the table, say whether the row exists. Rejected: all of the batch's changes below the
transaction. A connector that resumes far back may so far have repeated only an old change of the
row, and not the newer one that the table already has. The step is planned only where a batch has
such rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from lakeingest.event_columns import EVENT, OPERATION
from lakeingest.frame_schemas import MetadataColumns
from lakeingest.payload.key_lookup import LIVE, STORED_AT, with_table_row

NET_ZERO = "k"
"""Operation that ``plan.keyless`` gives a net-zero row, until ``resolve_net_zero`` replaces it."""


def net_zero_rows(decoded: DataFrame) -> DataFrame:
    """Select the net-zero rows of the frame that ``plan.keyless`` decodes."""
    return decoded.where(F.col("op") == NET_ZERO)


def resolve_net_zero(
    decoded: DataFrame,
    table: DataFrame | None,
    key: Sequence[str],
    tombstones_to: str,
    names: MetadataColumns,
) -> DataFrame:
    """Turn each net-zero row into a create or a delete: the state that the row had before.

    Args:
        decoded: As ``fold.fold_rows`` takes it.
        table: As ``key_lookup.with_table_row`` takes it, and the following.
        key: Names of its key columns.
        tombstones_to: Position up to which a row that the table lacks may be a deleted one.
        names: Names of the metadata columns.

    Returns:
        The same columns; no ``op`` is ``NET_ZERO``.
    """
    earlier = Window.partitionBy("key_row").orderBy("position")
    earlier = earlier.rowsBetween(Window.unboundedPreceding, -1)
    with_stored = with_table_row(decoded, table, key, tombstones_to, names)
    is_net_zero, is_new = F.col("op") == NET_ZERO, F.col("position") > F.col(STORED_AT)
    exists = F.when(~is_net_zero & is_new, F.col("op") != "d")
    with_state = with_stored.withColumn("_was", F.last(exists, ignorenulls=True).over(earlier))
    existed = F.coalesce(F.col("_was"), F.col(LIVE), F.lit(False))
    op = F.when(is_net_zero, F.when(existed, "c").otherwise("d")).otherwise(F.col("op"))
    changed = {"op": op}
    if EVENT in decoded.columns:
        # Its last event deletes the row, whatever it is like after the transaction.
        event = F.col(EVENT)
        changed[EVENT] = F.when(is_net_zero, event.withField(OPERATION, op)).otherwise(event)
    return with_state.withColumns(changed).select(*decoded.columns)
