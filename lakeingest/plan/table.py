"""The changes of one table and batch to merge payloads: stages two and five, joined."""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakeingest.decode.row import with_key, with_row
from lakeingest.payload import fold
from lakeingest.plan.spec import PipelineSpec, TableSpec
from lakeingest.shape import Kind


def rows_above(changes: DataFrame, floor: str) -> DataFrame:
    """Keep the row changes that no truncate has swept away."""
    rows = changes.where(F.col("kind").isin(Kind.ROW, Kind.SNAPSHOT))
    return rows.where(F.col("position") > F.lit(floor)) if floor else rows


def text_winners(changes: DataFrame, collections: Collection[str]) -> DataFrame:
    """Fold the row changes of several tables at once, all with bare keys and whole rows.

    Returns:
        ``collection`` and ``fold.fold_text``'s columns.
    """
    rows = rows_above(changes.where(F.col("collection").isin(*collections)), "")
    return fold.fold_text(rows, "collection")


def payload_of_winners(winners: DataFrame, table: TableSpec, spec: PipelineSpec) -> DataFrame:
    """Merge payloads of one table's ``text_winners``."""
    keyed = with_key(winners, "key", table.key_columns(), "key_row", wrapped=False)
    return _payload(keyed, table, spec)


def payload_of_whole_rows(rows: DataFrame, table: TableSpec, spec: PipelineSpec) -> DataFrame:
    """Merge payloads where no change leaves a column out: fold the text, decode the winners.

    Texts of the same key may differ when they carry a schema, so a wrapped key is read before the
    fold; a bare one afterwards.
    """
    if not table.wrapped:
        return payload_of_winners(fold.fold_text(rows), table, spec)
    keyed = with_key(rows, "key", table.key_columns(), "key_row", wrapped=True)
    winners = fold.fold_text(keyed.drop("key").withColumnRenamed("key_row", "key"))
    return _payload(winners.withColumnRenamed("key", "key_row"), table, spec)


def _payload(winners: DataFrame, table: TableSpec, spec: PipelineSpec) -> DataFrame:
    decoded = with_row(winners, table.columns, spec.encodings, wrapped=table.wrapped, masked=False)
    return fold.payload_of_last(decoded, table.names(), table.key, spec.names)


def decoded_rows(rows: DataFrame, table: TableSpec, spec: PipelineSpec) -> DataFrame:
    """Decode every change, with its mask of unavailable columns and the key it moved from."""
    decoded = with_row(
        rows,
        table.columns,
        spec.encodings,
        wrapped=table.wrapped,
        masked=True,
        before=table.key_in_value,
    )
    if table.key_in_value:
        names = [F.col("row").getField(name).alias(name) for name in table.key]
        decoded = decoded.withColumn("key_row", F.struct(*names))
        empty = decoded.schema["key_row"].dataType
        decoded = decoded.withColumn("moved_from_row", F.lit(None).cast(empty))
    else:
        decoded = with_key(decoded, "key", table.key_columns(), "key_row", wrapped=table.wrapped)
        decoded = with_key(
            decoded, "moved_from", table.key_columns(), "moved_from_row", wrapped=True
        )
    return decoded.select("key_row", "op", "position", "row", "unavailable", "moved_from_row")


def payload_of_partial_rows(decoded: DataFrame, table: TableSpec, spec: PipelineSpec) -> DataFrame:
    """Merge payloads where some change leaves a column out; see ``fold.fold_rows``."""
    fillable = table.fillable(spec.encodings)
    return fold.fold_rows(decoded, table.names(), table.key, fillable, spec.names)
