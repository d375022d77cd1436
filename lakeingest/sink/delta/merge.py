"""Apply the merge law as one Delta MERGE, which works for every Delta table and every size.

Rejected: to read the affected rows first and to write them back with ``replaceWhere``. It is 20 to
30 % cheaper (measured), but its read is outside Delta's conflict check.
"""

from __future__ import annotations

from delta.tables import DeltaMergeBuilder, DeltaTable
from pyspark.sql import Column

from lakeingest.named import quoted
from lakeingest.sink.contract import Changeset
from lakeingest.sink.merge_law import Clause, MergeLaw, small


def merge(
    table: DeltaTable, changeset: Changeset, law: MergeLaw, *, partial: bool
) -> DeltaMergeBuilder:
    """Return the MERGE, ready to execute.

    Args:
        table: Table to merge into.
        changeset: Payloads to merge.
        law: The merge law of the changeset.
        partial: Whether each fillable column is decided by its own position.
    """
    payloads = small(changeset.frame, changeset)
    builder = table.alias("t").merge(payloads.alias("s"), law.same_key())
    for clause in law.matched(partial=partial):
        if clause.values is None:
            builder = builder.whenMatchedDelete(clause.condition)
        else:
            builder = builder.whenMatchedUpdate(clause.condition, _assignments(clause))
    insert = law.inserted()
    builder = builder.whenNotMatchedInsert(insert.condition, _assignments(insert))
    swept = law.swept()
    if swept is None:
        return builder
    if swept.values is None:
        return builder.whenNotMatchedBySourceDelete(swept.condition)
    return builder.whenNotMatchedBySourceUpdate(swept.condition, _assignments(swept))


def _assignments(clause: Clause) -> dict[str, str | Column]:
    return {quoted(name): value for name, value in (clause.values or {}).items()}
