"""Rewrite a table, to change its schema and merge a batch's rows in one commit.

When a type becomes wider, or a new column has a default for the present rows, every row changes
anyway. Both are one commit, because the table's commit stores the progress. Rejected: a rewrite
before the batch. After a crash between the two, the rows have the default of a column that no
transaction has added yet. Rejected: a rewrite after the batch. After a crash, the rows lack the
default, and nothing records that it is due. With one commit, readers of the newest version also see
a new column and its values at the same time.

A column without a default is only added to the table's schema: by the transaction of a small batch,
else by ``ALTER TABLE`` before the MERGE. This changes no row, and a crash between the two leaves a
column of NULLs. Rejected: MERGE with Delta's schema evolution. It is one commit in either case, but
it puts a new column behind the metadata columns.
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
    """Return whether a schema change changes rows that the table has already."""
    return bool(change.widened or changeset.fills)


def merged_rows(
    rows: DataFrame, changeset: Changeset, law: MergeLaw, *, partial: bool
) -> DataFrame:
    """Return all rows of a table after the merge of a changeset.

    Args:
        rows: Rows of the table, in its new schema.
        changeset: Payloads to merge.
        law: The merge law of the changeset.
        partial: Whether each fillable column is decided by its own position.
    """
    schema = rows.schema
    table = rows.withColumn(_ROW, F.lit(True)).alias("t")
    payloads = changeset.frame.withColumn(_HIT, F.lit(True)).alias("s")
    joined = table.join(payloads, law.same_key(), "full")
    has_payload, is_new = F.col(f"s.{_HIT}").isNotNull(), F.col(f"t.{_ROW}").isNull()
    inserted, swept = law.inserted(), law.swept()
    stays, merged = matched_decisions(law, schema, has_payload & ~is_new, partial=partial)
    below = holds(swept, ~has_payload) if swept is not None else F.lit(False)
    if swept is not None and swept.values is None:
        stays = stays & ~below
    values = []
    for item, value, old in zip(schema, inserted_values(inserted, schema), merged, strict=True):
        present = old
        if swept is not None and swept.values is not None and item.name in swept.values:
            present = F.when(below, swept.values[item.name].cast(item.dataType)).otherwise(old)
        values.append(F.when(is_new, value).otherwise(present).alias(item.name))
    return joined.where(F.when(is_new, inserted.condition).otherwise(stays)).select(*values)
