"""Turn the changes of one table and batch into merge payloads: stages two and five, joined.

A declared key need not be the record's key. When its value changes, Debezium then sends one update
instead of a delete and a create. This module splits such an update in two, as for keyless tables;
otherwise the row would also stay under its old key. Only ``before`` holds the old key. An update
without ``before`` may or may not have changed the key, so it stops the run. Rejected: assume that
declared keys never change. A key that does change would give a wrong table without an error.
"""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeingest.decode.row import (
    Part,
    RowSpec,
    header_identifies_key,
    key_part,
    moved_from_part,
    null_in_key,
    row_part,
    with_key,
    with_parts,
    with_row,
)
from lakeingest.decode.types.logical_type import Site
from lakeingest.frame_schemas import MOVED_UNNAMED, Kind
from lakeingest.payload import deferred_key_order, fold
from lakeingest.plan.keyless import keyless_rows
from lakeingest.plan.spec import PipelineSpec, TableSpec


def rows_above(changes: DataFrame, floor: str) -> DataFrame:
    """Keep the row changes that no truncate sweeps away."""
    rows = changes.where(F.col("kind").isin(Kind.ROW, Kind.SNAPSHOT))
    return rows.where(F.col("position") > F.lit(floor)) if floor else rows


def record_latest(changes: DataFrame, collections: Collection[str]) -> DataFrame:
    """Fold the row changes of several tables at once, all with bare keys and whole rows.

    Returns:
        ``collection`` and ``fold.fold_records``'s columns.
    """
    rows = rows_above(changes.where(F.col("collection").isin(*collections)), "")
    return fold.fold_records(rows, "collection")


def record_each(changes: DataFrame, collections: Collection[str]) -> DataFrame:
    """Return the columns of ``record_latest`` for tables with no two row changes of one key."""
    rows = rows_above(changes.where(F.col("collection").isin(*collections)), "")
    return rows.select(
        "collection",
        "key",
        "op",
        "value",
        *fold.carried_event(rows),
        "position",
        F.col("op").alias("first_op"),
    )


def payload_of_latest(latest: DataFrame, table: TableSpec, spec: PipelineSpec) -> DataFrame:
    """Return the merge payloads of one table's part of ``record_latest``."""
    row = row_part(table.row_spec(spec), ("after",), masked=False)
    decoded = with_parts(latest, _key_part(table), row)
    return fold.payload_of_last(decoded, table.names(), table.key, spec.names)


def _key_part(table: TableSpec) -> Part:
    return key_part(table.key_columns(), "key_row", table.reader)


def payload_of_whole_rows(rows: DataFrame, table: TableSpec, spec: PipelineSpec) -> DataFrame:
    """Return merge payloads where no change omits a column: fold, then decode the latest per key.

    Octets of the same key may differ if they carry or name a schema. Then the key is decoded before
    the fold; otherwise after it.
    """
    if table.reader.bare_keys:
        return payload_of_latest(fold.fold_records(rows), table, spec)
    with_keys = with_key(rows, table.key_columns(), "key_row", table.reader)
    latest = fold.fold_records(with_keys.drop("key").withColumnRenamed("key_row", "key"))
    renamed = latest.withColumnRenamed("key", "key_row")
    decoded = with_row(renamed, table.row_spec(spec), masked=False)
    return fold.payload_of_last(decoded, table.names(), table.key, spec.names)


def decoded_rows(rows: DataFrame, table: TableSpec, spec: PipelineSpec) -> DataFrame:
    """Decode every change, with its mask of unavailable columns and the old key of a key change.

    Returns:
        The columns of ``fold.fold_rows`` and ``deferred_key_order.WITHIN``.
    """
    if table.keyless is not None:
        return keyless_rows(rows, table, spec)
    sides = ("after", "before") if table.key_in_value else ("after",)
    unnamed = MOVED_UNNAMED in rows.columns
    row = row_part(table.row_spec(spec), sides, masked=True, unnamed=unnamed)
    if table.key_in_value:
        decoded = _with_declared_key(with_parts(rows, row), table, spec)
    else:
        old_key = moved_from_part(table.key_columns(), "moved_from_row", table.reader)
        decoded = with_parts(rows, row, _key_part(table), old_key)
    has_old_key = F.coalesce(F.col("moved_from"), F.lit("")) != ""
    return decoded.select(
        "key_row",
        "op",
        "position",
        "row",
        "unavailable",
        "moved_from_row",
        F.col("position").alias("below"),
        deferred_key_order.within().alias(deferred_key_order.WITHIN),
        (
            has_old_key | F.col("moved_from_row").isNotNull() | _key_change_without_header(rows)
        ).alias("moved"),
        *fold.carried_event(rows),
        *fold.carried_end(rows),
    )


def has_old_keys(table: TableSpec) -> bool:
    """Return whether ``decoded_rows`` gives the old key of each key change."""
    return not table.key_in_value and header_identifies_key(table.key_columns(), table.reader)


def keys_with_deferred_order(rows: DataFrame) -> DataFrame:
    """Find the record keys with a deferred key order; see ``deferred_key_order.exchanged_keys``."""
    changes = rows.withColumn(deferred_key_order.WITHIN, deferred_key_order.within())
    key_change = F.col("moved_from").isNotNull() | _key_change_without_header(rows)
    return deferred_key_order.exchanged_keys(changes, "key", key_change)


def tables_with_deferred_order(rows: DataFrame) -> DataFrame:
    """Find the tables with a deferred key order among the row changes of several tables.

    Returns:
        ``collection``, each once.
    """
    of_tables = rows.withColumn("key", F.struct("collection", "key"))
    return keys_with_deferred_order(of_tables).select("key.collection").distinct()


def _key_change_without_header(rows: DataFrame) -> Column:
    """Return a condition: a key change created the row, and no header says so."""
    return F.col(MOVED_UNNAMED) if MOVED_UNNAMED in rows.columns else F.lit(False)


def _with_declared_key(decoded: DataFrame, table: TableSpec, spec: PipelineSpec) -> DataFrame:
    """Read the key from the row; split an update that changes it into two changes."""
    key = F.struct(*(_key_column(name).alias(name) for name in table.key))
    with_keys = decoded.withColumn("key_row", key).withColumnsRenamed(_AFTER_COLUMNS)
    key_spec = RowSpec(table.key_columns(), table.encodings_in(spec), table.reader)
    before = with_row(with_keys, key_spec, masked=True, sides=("before",))
    old = F.when(
        F.col("op") == "u", F.struct(*(_old_key_column(name).alias(name) for name in table.key))
    )
    no_key = F.lit(None).cast(with_keys.schema["key_row"].dataType)
    parts = before.withColumn("_old", F.coalesce(old, no_key)).withColumn(
        "_part",
        F.explode(
            F.when(
                (F.col("op") == "u") & ~F.col("_old").eqNullSafe(F.col("key_row")),
                F.array(_part("d", "_old", no_key), _part("c", "key_row", F.col("_old"))),
            ).otherwise(F.array(_part(F.col("op"), "key_row", no_key)))
        ),
    )
    deleted = F.col("_part.op") == "d"
    return (
        parts.withColumn("op", F.col("_part.op"))
        .withColumn("key_row", F.col("_part.key_row"))
        .withColumn("moved_from_row", F.col("_part.moved_from_row"))
        .withColumn("row", F.when(~deleted, F.col("_row")))
        .withColumn("unavailable", F.when(~deleted, F.col("_unavailable")))
    )


def _part(op: Column | str, key: str, moved_from: Column) -> Column:
    op = F.lit(op) if isinstance(op, str) else op
    return F.struct(op.alias("op"), F.col(key).alias("key_row"), moved_from.alias("moved_from_row"))


_AFTER_COLUMNS = {"row": "_row", "unavailable": "_unavailable"}
_WHOLE = "declare the record key's columns as its key, or set REPLICA IDENTITY FULL"


def _key_column(name: str) -> Column:
    """Return a key column of ``row``; fail the job if the change leaves it out."""
    missing = F.coalesce(F.array_contains("unavailable", name), F.lit(False))
    omitted_error = Site(name).failed("an update leaves this column of the key out", _WHOLE)
    value = F.col("row").getField(name)
    # Without REPLICA IDENTITY FULL, a delete has the record's key, and NULL in all other columns.
    old_key_error = Site(name).failed(
        "a delete does not say what this column of the key was", _WHOLE
    )
    return (
        F.when(missing, omitted_error)
        .when((F.col("op") == "d") & value.isNull(), old_key_error)
        .when(value.isNull(), null_in_key(Site(name)))
        .otherwise(value)
    )


def _old_key_column(name: str) -> Column:
    """Return a key column of ``before`` of an update; fail the job if ``before`` lacks it."""
    available = F.col("row").isNotNull() & ~F.coalesce(
        F.array_contains("unavailable", name), F.lit(False)
    )
    error = Site(name).failed("an update does not say what this column of the key was", _WHOLE)
    return F.when(available, F.col("row").getField(name)).otherwise(error)


def payload_of_partial_rows(decoded: DataFrame, table: TableSpec, spec: PipelineSpec) -> DataFrame:
    """Return merge payloads where some change leaves a column out; see ``fold.fold_rows``."""
    fillable = table.fillable(table.encodings_in(spec))
    return fold.fold_rows(decoded, table.names(), table.key, fillable, spec.names)
