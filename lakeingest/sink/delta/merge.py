"""Apply the merge law as one Delta MERGE, which works for every Delta table and every size.

Rejected: to read the affected rows first and to write them back with ``replaceWhere``. It is 20 to
30 % cheaper (measured), but its read is outside Delta's conflict check.
"""

from __future__ import annotations

from delta.tables import DeltaMergeBuilder, DeltaTable
from pyspark.sql import Column

from lakeingest.named import quoted
from lakeingest.sink.contract import Changeset
from lakeingest.sink.merge_join import small
from lakeingest.sink.merge_law import Clause, MergeLaw


def merge(table: DeltaTable, changeset: Changeset, law: MergeLaw) -> DeltaMergeBuilder:
    """Return the MERGE of a changeset into a table by its law, ready to execute."""
    payloads = small(changeset.frame, changeset)
    builder = table.alias("t").merge(payloads.alias("s"), law.same_key())
    for clause in law.matched():
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
