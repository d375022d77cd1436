"""Read the table's rows of a batch's keys without moving the other rows of the table.

A key look-up must also keep the keys that the table does not have (an outer join). Such a join
cannot broadcast the side that it keeps, so Spark would shuffle the table, with its widest columns,
for a few keys. So first reduce the table to the rows of these keys, with a semi join, which can
broadcast the keys. Spark cannot know how few the keys are: a checkpointed frame keeps the size
estimate of the plan before its local checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeingest.frame_schemas import MetadataColumns
from lakeingest.named import all_named

LIVE, STORED_AT = "live", "stored_at"
"""Columns of ``with_table_row``."""

FEW = 100_000
"""Most keys that a broadcast sends to every task: some ten megabytes."""

_KEY = "_look_up_key"


def rows_of(
    table: DataFrame, key: Sequence[str], keys: DataFrame, key_struct: Column, number: int
) -> DataFrame:
    """Return the table's rows of these keys; the whole table if the keys are many.

    Args:
        table: Any columns.
        key: Names of its key columns.
        keys: Frame of the keys.
        key_struct: The column of ``keys`` with the key (struct); a key may be there twice.
        number: Approximate number of rows of ``keys``.
    """
    if number > FEW:
        return table
    broadcast_keys = F.broadcast(keys.select(key_struct.alias(_KEY)))
    return table.join(broadcast_keys, F.struct(*all_named(key)) == F.col(_KEY), "left_semi")


def with_table_row(
    frame: DataFrame,
    table: DataFrame | None,
    key: Sequence[str],
    tombstones_to: str,
    names: MetadataColumns,
) -> DataFrame:
    """Add what the table knows of each key.

    A change of the key at or below ``STORED_AT`` is a redelivery, with or without its whole
    transaction: the table already has its effect, and nobody knows any more what was there before.

    Args:
        frame: Has ``key_row``.
        table: The table before the batch, above the newest truncate; at least its rows of these
            keys (``rows_of``). None: the table is new.
        key: Names of its key columns.
        tombstones_to: Position up to which a row that the table lacks may be a deleted one, because
            a hard delete leaves no row; empty: the table has every row.
        names: Names of the metadata columns.

    Returns:
        The frame with ``LIVE`` (whether the table's row is live; NULL: it has none) and
        ``STORED_AT``.
    """
    if table is None:
        columns = {LIVE: F.lit(None).cast("boolean"), STORED_AT: F.lit(tombstones_to)}
        return frame.withColumns(columns)
    rows = table.select(
        F.struct(*all_named(key)).alias("_stored_key"),
        (~F.col(names.deleted)).alias(LIVE),
        F.col(names.position).alias(STORED_AT),
    )
    joined = frame.join(rows, F.col("key_row") == F.col("_stored_key"), "left")
    stored_at = F.coalesce(F.col(STORED_AT), F.lit(tombstones_to))
    return joined.withColumn(STORED_AT, stored_at).drop("_stored_key")
