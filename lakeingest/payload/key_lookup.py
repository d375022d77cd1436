"""The table's rows of the keys that a batch asks for, found without moving the table's other rows.

A look-up keeps the keys that the table does not have, and a join that keeps one side cannot send
that side to every task: Spark would shuffle the table instead, with its widest columns, for a few
keys. So the table is first reduced to the rows that are asked for, by a join that can. Spark cannot
know how few the keys are: a held frame has the size estimate of the plan that it was cut off from.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeingest.named import all_named

FEW = 100_000
"""Keys that are sent to every task; some ten megabytes of them."""

_ASKED = "_asked"


def rows_of(
    table: DataFrame, key: Sequence[str], keys: DataFrame, asked: Column, number: int
) -> DataFrame:
    """Return the table's rows of some keys; where these are many, the table.

    Args:
        table: Any columns.
        key: Names of its key columns.
        keys: Frame of the keys.
        asked: Its column of them (struct); a key may be there twice.
        number: How many rows the frame has, about.
    """
    if number > FEW:
        return table
    wanted = F.broadcast(keys.select(asked.alias(_ASKED)))
    return table.join(wanted, F.struct(*all_named(key)) == F.col(_ASKED), "left_semi")
