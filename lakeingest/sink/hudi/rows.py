"""The rows that one upsert brings: payloads as they are, or decided against the table's rows."""

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
    """Return payloads that are whole rows, in the table's schema; the engine drops older ones."""
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
    """Return the rows that change and those that are new, as they will be.

    Args:
        table: The table as it is.
        changeset: What is merged.
        law: Its clauses.
        schema: The table's schema after it.
        partial: Whether columns are decided one by one.
        every: Whether all other rows are wanted, too.
        more: Further columns, over the aliases ``t`` (the table) and ``s`` (the payloads).
    """
    rows = in_schema(table, schema, changeset).withColumn(_ROW, F.lit(True))
    payloads = small(changeset.frame.withColumn(_HIT, F.lit(True)), changeset).alias("s")
    swept = law.swept()
    # A truncate reaches rows that have no payload.
    others = every or swept is not None
    joined = rows.alias("t").join(payloads, law.same_key(), "full" if others else "right")
    hit, new = F.col(f"s.{_HIT}").isNotNull(), F.col(f"t.{_ROW}").isNull()
    inserted = law.inserted()
    _, decided = matched_decisions(law, schema, hit & ~new, partial=partial)
    touched = F.lit(every)
    for clause in law.matched(partial=partial):
        touched = touched | holds(clause, hit & ~new)
    buried = holds(swept, ~hit) if swept is not None else F.lit(False)
    values = []
    for item, value, old in zip(schema, inserted_values(inserted, schema), decided, strict=True):
        kept = old
        if swept is not None and swept.values is not None and item.name in swept.values:
            kept = F.when(buried, swept.values[item.name].cast(item.dataType)).otherwise(old)
        values.append(F.when(new, value).otherwise(kept).alias(item.name))
    chosen = joined.where(F.when(new, inserted.condition).otherwise(touched | buried))
    return chosen.select(*values, *more)


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
    """Return the same, and records that take a row from the partition that it leaves."""
    partition = changeset.partition
    was = [target(name) for name in partition]
    place = origin(partition, was, F.col(f"t.{_ROW}").isNotNull())
    rows = decided_rows(table, changeset, law, schema, partial=partial, every=every, more=[place])
    return with_moves(rows, schema, changeset.key, partition, names)
