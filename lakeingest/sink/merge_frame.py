"""Apply the merge law to joined rows: decide whether each row stays, and its new values.

For sinks that join table and payloads themselves. The engine's MERGE takes the clauses directly.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakeingest.sink.merge_law import Clause, MergeLaw, target


def matched_decisions(
    law: MergeLaw, schema: StructType, hit: Column, *, partial: bool
) -> tuple[Column, list[Column]]:
    """Return what the law decides for rows of the table that may have a payload.

    Args:
        law: The merge law of the changeset.
        schema: The table's schema.
        hit: Whether the row has a payload.
        partial: Whether each fillable column is decided by its own position.

    Returns:
        Whether the row stays, and its columns in the schema's order.
    """
    clauses = law.matched(partial=partial)
    conditions = [holds(clause, hit) for clause in clauses]
    stays = F.lit(True)
    for clause, condition in zip(clauses, conditions, strict=True):
        # Only the first clause can remove rows, so no earlier clause can apply to the row.
        if clause.values is None:
            stays = stays & ~condition
    columns = []
    for item in schema:
        value = target(item.name)
        for clause, condition in reversed(list(zip(clauses, conditions, strict=True))):
            if clause.values is not None and item.name in clause.values:
                new = clause.values[item.name].cast(item.dataType)
                value = F.when(condition, new).otherwise(value)
        columns.append(value)
    return stays, columns


def holds(clause: Clause, where: Column) -> Column:
    """Return whether a clause's condition holds; never NULL."""
    return F.coalesce(where & clause.condition, F.lit(False))
