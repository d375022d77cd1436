"""A table that gets another schema and a batch's rows in one commit: it is written anew.

Where a type is widened, or a new column has a default that the rows from before have, every row
changes anyhow. In the same commit, because the table's commit says how far it is: a rewrite before
the batch that a crash parts from it would leave a table whose rows have the default of a column
that no transaction has brought yet, and a rewrite after it one whose rows have none, and nobody
knows of it any more. Readers of the table's head see a column come with its values, too.

A column without a default is only added to the table's schema: by the transaction that brings a
small batch, else by ``ALTER TABLE`` before the MERGE. No row changes by that, and a crash in
between leaves a column of NULLs. Rejected: MERGE with Delta's schema evolution, one commit in
either case, which puts a new column behind the metadata columns.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakeingest.sink.contract import Changeset
from lakeingest.sink.merge_frame import holds, matched_decisions
from lakeingest.sink.merge_law import MergeLaw, inserted_values
from lakeingest.sink.schema_change import SchemaChange

_HIT, _ROW = "_lakeingest_hit", "_lakeingest_row"


def rewrites(change: SchemaChange, changeset: Changeset) -> bool:
    """Tell whether a change of the schema changes rows that are in the table already."""
    return bool(change.widened or changeset.fills)


def merged_rows(
    rows: DataFrame, changeset: Changeset, law: MergeLaw, *, partial: bool
) -> DataFrame:
    """Return all rows of a table as a changeset leaves them.

    Args:
        rows: The table, in the schema that it shall have.
        changeset: What is merged.
        law: Its clauses.
        partial: Whether columns are decided one by one.
    """
    schema = rows.schema
    table = rows.withColumn(_ROW, F.lit(True)).alias("t")
    payloads = changeset.frame.withColumn(_HIT, F.lit(True)).alias("s")
    joined = table.join(payloads, law.same_key(), "full")
    hit, new = F.col(f"s.{_HIT}").isNotNull(), F.col(f"t.{_ROW}").isNull()
    inserted, swept = law.inserted(), law.swept()
    kept, decided = matched_decisions(law, schema, hit & ~new, partial=partial)
    below = holds(swept, ~hit) if swept is not None else F.lit(False)
    if swept is not None and swept.values is None:
        kept = kept & ~below
    values = []
    for item, value, old in zip(schema, inserted_values(inserted, schema), decided, strict=True):
        stays = old
        if swept is not None and swept.values is not None and item.name in swept.values:
            stays = F.when(below, swept.values[item.name].cast(item.dataType)).otherwise(old)
        values.append(F.when(new, value).otherwise(stays).alias(item.name))
    return joined.where(F.when(new, inserted.condition).otherwise(kept)).select(*values)
