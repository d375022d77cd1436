"""Compute the rows of one upsert: payloads directly, or payloads merged with the table's rows."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakeingest.frame_schemas import MetadataColumns
from lakeingest.sink.contract import Changeset
from lakeingest.sink.hudi.partition import origin, with_moves
from lakeingest.sink.merge_frame import holds, matched_decisions
from lakeingest.sink.merge_law import MergeLaw, inserted_rows, inserted_values, small, target
from lakeingest.sink.schema_change import in_schema

_HIT, _ROW = "_lakeingest_hit", "_lakeingest_row"


def whole_rows(changeset: Changeset, law: MergeLaw, schema: StructType) -> DataFrame:
    """Return payloads that are complete rows, in the table's schema; Hudi drops older ones."""
    return inserted_rows(changeset.frame, law, schema)


def decided_rows(
    table: DataFrame,
    changeset: Changeset,
    law: MergeLaw,
    schema: StructType,
    *,
    partial: bool,
    every: bool = False,
    more: Sequence[Column] = (),
) -> DataFrame:
    """Return the rows that change and the new rows, with their values after the merge.

    Args:
        table: Present rows of the table.
        changeset: Payloads to merge.
        law: The merge law of the changeset.
        schema: The table's schema after the merge.
        partial: Whether each fillable column is decided by its own position.
        every: Whether to return all other rows, too.
        more: Further columns, over the aliases ``t`` (the table) and ``s`` (the payloads).
    """
    rows = in_schema(table, schema, changeset).withColumn(_ROW, F.lit(True))
    payloads = small(changeset.frame.withColumn(_HIT, F.lit(True)), changeset).alias("s")
    swept = law.swept()
    # A truncate also affects rows without a payload.
    all_rows = every or swept is not None
    joined = rows.alias("t").join(payloads, law.same_key(), "full" if all_rows else "right")
    has_payload, is_new = F.col(f"s.{_HIT}").isNotNull(), F.col(f"t.{_ROW}").isNull()
    inserted = law.inserted()
    _, merged = matched_decisions(law, schema, has_payload & ~is_new, partial=partial)
    changes = F.lit(every)
    for clause in law.matched(partial=partial):
        changes = changes | holds(clause, has_payload & ~is_new)
    truncated = holds(swept, ~has_payload) if swept is not None else F.lit(False)
    values = []
    for item, value, old in zip(schema, inserted_values(inserted, schema), merged, strict=True):
        present = old
        if swept is not None and swept.values is not None and item.name in swept.values:
            present = F.when(truncated, swept.values[item.name].cast(item.dataType)).otherwise(old)
        values.append(F.when(is_new, value).otherwise(present).alias(item.name))
    rows_to_write = joined.where(F.when(is_new, inserted.condition).otherwise(changes | truncated))
    return rows_to_write.select(*values, *more)


def decided_with_moves(
    table: DataFrame,
    changeset: Changeset,
    law: MergeLaw,
    schema: StructType,
    names: MetadataColumns,
    *,
    partial: bool,
    every: bool = False,
) -> DataFrame:
    """Return ``decided_rows``, and records that remove rows from their old partitions.

    Args:
        table: Present rows of the table.
        changeset: Payloads to merge.
        law: The merge law of the changeset.
        schema: The table's schema after the merge.
        names: Names of the metadata columns.
        partial: Whether each fillable column is decided by its own position.
        every: Whether to return all other rows, too.

    Returns:
        Rows with the columns of ``schema`` and Hudi's delete marker (boolean).
    """
    partition = changeset.partition
    old_values = [target(name) for name in partition]
    old_partition = origin(partition, old_values, F.col(f"t.{_ROW}").isNotNull())
    rows = decided_rows(
        table, changeset, law, schema, partial=partial, every=every, more=[old_partition]
    )
    return with_moves(rows, schema, changeset.key, partition, names)
