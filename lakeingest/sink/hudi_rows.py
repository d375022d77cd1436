"""The rows that one upsert brings: payloads as they are, or decided against the table's rows."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from lakeingest.named import named
from lakeingest.shape import MetadataColumns
from lakeingest.sink.contract import Changeset
from lakeingest.sink.decisions import holds, matched_decisions
from lakeingest.sink.hudi_partition import origin, with_moves
from lakeingest.sink.merge_law import MergeLaw, inserted_rows, inserted_values, small, target
from lakeingest.sink.schema_change import SchemaChange

_HIT, _ROW = "_lakeingest_hit", "_lakeingest_row"


def written_schema(table: StructType, change: SchemaChange, names: MetadataColumns) -> StructType:
    """Return the schema that the next commit gives the table: metadata columns stay last."""
    wide = {item.name: item.dataType for item in change.widened}
    fields = [StructField(i.name, wide.get(i.name, i.dataType)) for i in table]
    metadata = [item for item in fields if item.name in names.names]
    columns = [item for item in fields if item.name not in names.names]
    return StructType([*columns, *change.added, *metadata])


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
    more: Sequence[Column] = (),
) -> DataFrame:
    """Return the rows that change and those that are new, as they will be.

    Args:
        table: The table as it is.
        changeset: What is merged.
        law: Its clauses.
        schema: The table's schema after it.
        partial: Whether columns are decided one by one.
        more: Further columns, over the aliases ``t`` (the table) and ``s`` (the payloads).
    """
    known = [named(item.name) if item.name in table.columns else F.lit(None) for item in schema]
    rows = table.select(
        *(
            value.cast(item.dataType).alias(item.name)
            for value, item in zip(known, schema, strict=True)
        ),
        F.lit(True).alias(_ROW),
    )
    payloads = small(changeset.frame.withColumn(_HIT, F.lit(True)), changeset).alias("s")
    swept = law.swept()
    # A truncate reaches rows that have no payload.
    joined = rows.alias("t").join(payloads, law.same_key(), "right" if swept is None else "full")
    hit, new = F.col(f"s.{_HIT}").isNotNull(), F.col(f"t.{_ROW}").isNull()
    inserted = law.inserted()
    _, decided = matched_decisions(law, schema, hit & ~new, partial=partial)
    touched = F.lit(False)
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
) -> DataFrame:
    """Return the same, and records that take a row from the partition that it leaves."""
    partition = changeset.partition
    was = [target(name) for name in partition]
    place = origin(partition, was, F.col(f"t.{_ROW}").isNotNull())
    rows = decided_rows(table, changeset, law, schema, partial=partial, more=[place])
    return with_moves(rows, schema, changeset.key, partition, names)
