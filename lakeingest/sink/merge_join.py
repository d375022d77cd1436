"""Merge a batch of payloads with rows of a table: join them and apply the merge law.

The sinks read different rows and write the result in different ways. What becomes of each row is
decided here for all of them, and by the engine's MERGE under the same clauses.

A row of a table always has a position, and so has a payload. So after the join, a NULL position
shows that the other side is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeingest.sink.contract import Changeset
from lakeingest.sink.merge_law import Clause, MergeLaw, source, target

SMALL_BYTES = 16 * 1024 * 1024
"""Largest text size of a changeset that Spark broadcasts instead of shuffling the table."""


def small(frame: DataFrame, changeset: Changeset) -> DataFrame:
    """Mark a frame of the changeset's rows for broadcast if it is small.

    Spark cannot decide this: a checkpointed frame keeps the size estimate of the plan that the
    checkpoint cut off.
    """
    return F.broadcast(frame) if changeset.size <= SMALL_BYTES else frame


def merged_rows(
    table: DataFrame,
    payloads: DataFrame,
    law: MergeLaw,
    how: str = "full",
    *,
    every: bool = True,
    more: Sequence[Column] = (),
) -> DataFrame:
    """Return rows of a table after the merge of a changeset.

    Args:
        table: Rows of the table, in the law's schema.
        payloads: The changeset's frame.
        law: The merge law of the changeset.
        how: ``full``; ``left``: without the payloads that have no row in ``table``; ``right``:
            without the rows that have no payload.
        every: Whether to return rows that do not change, too.
        more: Further columns, over the aliases ``t`` (the table) and ``s`` (the payloads).
    """
    joined = table.alias("t").join(payloads.alias("s"), law.same_key(), how)
    has_payload = source(law.names.position).isNotNull()
    is_new = target(law.names.position).isNull()
    matches = has_payload if how == "left" else has_payload & ~is_new
    cases = [(_holds(clause, matches), clause.values) for clause in law.matched()]
    swept = law.swept()
    if swept is not None:
        cases.append((_holds(swept, ~has_payload), swept.values))
    stays = ~reduce(or_, (holds for holds, values in cases if values is None), F.lit(False))
    if not every:
        stays = stays & reduce(or_, (holds for holds, _ in cases), F.lit(False))
    columns = []
    for item in law.schema:
        value = target(item.name)
        for holds, values in reversed(cases):
            if values is not None and item.name in values:
                value = F.when(holds, values[item.name].cast(item.dataType)).otherwise(value)
        columns.append(value)
    if how != "left":
        inserted = law.inserted()
        stays = F.when(is_new, inserted.condition).otherwise(stays)
        new_values = _inserted_values(inserted, law)
        columns = [
            F.when(is_new, new).otherwise(old) for new, old in zip(new_values, columns, strict=True)
        ]
    aliases = zip(columns, law.schema.fieldNames(), strict=True)
    return joined.where(stays).select(*(value.alias(name) for value, name in aliases), *more)


def inserted_rows(payloads: DataFrame, law: MergeLaw) -> DataFrame:
    """Return payloads without a row in the table as new rows, in the law's schema.

    Args:
        payloads: The changeset's frame, or a part of it.
        law: The merge law of the changeset.
    """
    clause = law.inserted()
    values = zip(_inserted_values(clause, law), law.schema.fieldNames(), strict=True)
    frame = payloads.alias("s").where(clause.condition)
    return frame.select(*(value.alias(name) for value, name in values))


def _inserted_values(clause: Clause, law: MergeLaw) -> list[Column]:
    """Return the table's columns from an insert's clause; NULL for columns that it omits."""
    values = clause.values or {}
    return [values.get(item.name, F.lit(None)).cast(item.dataType) for item in law.schema]


def _holds(clause: Clause, where: Column) -> Column:
    """Return whether a clause's condition holds; never NULL."""
    return F.coalesce(where & clause.condition, F.lit(False))
