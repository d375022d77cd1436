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

from lakeingest.named import all_named

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
