"""What the merge law decides of each joined row: whether it stays, and what its columns become.

For sinks that join table and payloads themselves; the engine's MERGE takes the clauses as they are.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakeingest.sink.merge_law import Clause, MergeLaw, target


def matched_decisions(
    law: MergeLaw, schema: StructType, hit: Column, *, partial: bool
) -> tuple[Column, list[Column]]:
    """Decide on rows of the table that may have a payload.

    Args:
        law: The merge law of the changeset.
        schema: The table's schema.
        hit: Whether the row has a payload.
        partial: Whether columns are decided one by one.

    Returns:
        Whether the row stays, and its columns in the schema's order.
    """
    clauses = law.matched(partial=partial)
    conditions = [holds(clause, hit) for clause in clauses]
    kept = F.lit(True)
    for clause, condition in zip(clauses, conditions, strict=True):
        # Removal is the first clause, if any: no other one can have claimed the row.
        if clause.values is None:
            kept = kept & ~condition
    decided = []
    for item in schema:
        value = target(item.name)
        for clause, condition in reversed(list(zip(clauses, conditions, strict=True))):
            if clause.values is not None and item.name in clause.values:
                new = clause.values[item.name].cast(item.dataType)
                value = F.when(condition, new).otherwise(value)
        decided.append(value)
    return kept, decided


def holds(clause: Clause, where: Column) -> Column:
    """Tell whether a clause's condition holds; never null."""
    return F.coalesce(where & clause.condition, F.lit(False))
