"""The changes of one table and batch to merge payloads: stages two and five, joined.

A key that a user declares need not be the record's key, so Debezium sends no pair when its value
changes, but one update. It is taken apart here, as keyless rows are: else the row would stay under
its old key, too. What the key was, only ``before`` says; an update without it may or may not have
changed the key, so it stops the run. To believe that declared keys never change would be wrong in
silence for whoever declares one that does.
"""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeingest.decode.logical_type import Site
from lakeingest.decode.row import header_tells, with_key, with_moved_from, with_row
from lakeingest.frame_schemas import MOVED_UNNAMED, Kind
from lakeingest.payload import deferred_key_order, fold
from lakeingest.plan.keyless import keyless_rows
from lakeingest.plan.spec import PipelineSpec, TableSpec


def rows_above(changes: DataFrame, floor: str) -> DataFrame:
    """Keep the row changes that no truncate has swept away."""
    rows = changes.where(F.col("kind").isin(Kind.ROW, Kind.SNAPSHOT))
    return rows.where(F.col("position") > F.lit(floor)) if floor else rows


def record_latest(changes: DataFrame, collections: Collection[str]) -> DataFrame:
    """Fold the row changes of several tables at once, all with bare keys and whole rows.

    Returns:
        ``collection`` and ``fold.fold_records``'s columns.
    """
    rows = rows_above(changes.where(F.col("collection").isin(*collections)), "")
    return fold.fold_records(rows, "collection")


def payload_of_latest(latest: DataFrame, table: TableSpec, spec: PipelineSpec) -> DataFrame:
    """Merge payloads of one table's ``record_winners``."""
    keyed = with_key(latest, table.key_columns(), "key_row", table.reader)
    return _payload(keyed, table, spec)


def payload_of_whole_rows(rows: DataFrame, table: TableSpec, spec: PipelineSpec) -> DataFrame:
    """Merge payloads where no change leaves a column out: fold the records, decode the winners.

    Octets of the same key may differ where they carry or name a schema; then a key is read before
    the fold, else afterwards.
    """
    if table.reader.bare_keys:
        return payload_of_latest(fold.fold_records(rows), table, spec)
    keyed = with_key(rows, table.key_columns(), "key_row", table.reader)
    latest = fold.fold_records(keyed.drop("key").withColumnRenamed("key_row", "key"))
    return _payload(latest.withColumnRenamed("key", "key_row"), table, spec)


def _payload(latest: DataFrame, table: TableSpec, spec: PipelineSpec) -> DataFrame:
    decoded = with_row(
        latest,
        table.columns,
        table.encodings_in(spec),
        table.reader,
        masked=False,
        absences=table.absences,
    )
    return fold.payload_of_last(decoded, table.names(), table.key, spec.names)


def decoded_rows(rows: DataFrame, table: TableSpec, spec: PipelineSpec) -> DataFrame:
    """Decode every change, with its mask of unavailable columns and the key it moved from.

    Returns:
        ``fold.fold_rows``'s columns and ``passing.WITHIN``.
    """
    if table.keyless is not None:
        return keyless_rows(rows, table, spec)
    decoded = with_row(
        rows,
        table.columns,
        table.encodings_in(spec),
        table.reader,
        masked=True,
        sides=("after", "before") if table.key_in_value else ("after",),
        absences=table.absences,
    )
    if table.key_in_value:
        decoded = _with_declared_key(decoded, table, spec)
    else:
        decoded = with_key(decoded, table.key_columns(), "key_row", table.reader)
        decoded = with_moved_from(decoded, table.key_columns(), "moved_from_row", table.reader)
    moved = F.coalesce(F.col("moved_from"), F.lit("")) != ""
    return decoded.select(
        "key_row",
        "op",
        "position",
        "row",
        "unavailable",
        "moved_from_row",
        F.col("position").alias("below"),
        deferred_key_order.within().alias(deferred_key_order.WITHIN),
        (moved | F.col("moved_from_row").isNotNull() | _unnamed(rows)).alias("moved"),
        *fold.carried_event(rows),
    )


def old_keys_told(table: TableSpec) -> bool:
    """Tell whether ``decoded_rows`` says of each key change what the old key was."""
    return not table.key_in_value and header_tells(table.key_columns(), table.reader)


def keys_passed(rows: DataFrame) -> DataFrame:
    """Find the record keys that rows may have passed one another at; see ``passing.passed``."""
    changes = rows.withColumn(deferred_key_order.WITHIN, deferred_key_order.within())
    moved = F.col("moved_from").isNotNull() | _unnamed(rows)
    return deferred_key_order.passed(changes, "key", moved)


def _unnamed(rows: DataFrame) -> Column:
    """Condition: a key change made the row, though no header says so."""
    return F.col(MOVED_UNNAMED) if MOVED_UNNAMED in rows.columns else F.lit(False)


def _with_declared_key(decoded: DataFrame, table: TableSpec, spec: PipelineSpec) -> DataFrame:
    """Read the key from the row, and take an update that changes it apart in two changes."""
    key = F.struct(*(_there(name).alias(name) for name in table.key))
    keyed = decoded.withColumn("key_row", key).withColumnsRenamed(_SET_ASIDE)
    before = with_row(
        keyed,
        table.key_columns(),
        table.encodings_in(spec),
        table.reader,
        masked=True,
        sides=("before",),
    )
    old = F.when(F.col("op") == "u", F.struct(*(_before(name).alias(name) for name in table.key)))
    unkeyed = F.lit(None).cast(keyed.schema["key_row"].dataType)
    parts = before.withColumn("_old", F.coalesce(old, unkeyed)).withColumn(
        "_part",
        F.explode(
            F.when(
                (F.col("op") == "u") & ~F.col("_old").eqNullSafe(F.col("key_row")),
                F.array(_part("d", "_old", unkeyed), _part("c", "key_row", F.col("_old"))),
            ).otherwise(F.array(_part(F.col("op"), "key_row", unkeyed)))
        ),
    )
    gone = F.col("_part.op") == "d"
    return (
        parts.withColumn("op", F.col("_part.op"))
        .withColumn("key_row", F.col("_part.key_row"))
        .withColumn("moved_from_row", F.col("_part.moved_from_row"))
        .withColumn("row", F.when(~gone, F.col("_row")))
        .withColumn("unavailable", F.when(~gone, F.col("_unavailable")))
    )


def _part(op: Column | str, key: str, moved_from: Column) -> Column:
    op = F.lit(op) if isinstance(op, str) else op
    return F.struct(op.alias("op"), F.col(key).alias("key_row"), moved_from.alias("moved_from_row"))


_SET_ASIDE = {"row": "_row", "unavailable": "_unavailable"}
_WHOLE = "declare the record key's columns as its key, or set REPLICA IDENTITY FULL"
_WITHOUT_NULL = "declare columns as its key that are NOT NULL"


def _there(name: str) -> Column:
    """Return a key column of ``row``; one that is left out fails the job."""
    missing = F.coalesce(F.array_contains("unavailable", name), F.lit(False))
    failed = Site(name).failed("an update leaves this column of the key out", _WHOLE)
    value = F.col("row").getField(name)
    # Without REPLICA IDENTITY FULL a delete has the record's key, and NULL for all else.
    unsaid = Site(name).failed("a delete does not say what this column of the key was", _WHOLE)
    unkeyed = Site(name).failed("NULL in a column of the key finds no row", _WITHOUT_NULL)
    return (
        F.when(missing, failed)
        .when((F.col("op") == "d") & value.isNull(), unsaid)
        .when(value.isNull(), unkeyed)
        .otherwise(value)
    )


def _before(name: str) -> Column:
    """Return a key column of an update's row before it; one that is not told fails the job."""
    told = F.col("row").isNotNull() & ~F.coalesce(
        F.array_contains("unavailable", name), F.lit(False)
    )
    failed = Site(name).failed("an update does not say what this column of the key was", _WHOLE)
    return F.when(told, F.col("row").getField(name)).otherwise(failed)


def payload_of_partial_rows(decoded: DataFrame, table: TableSpec, spec: PipelineSpec) -> DataFrame:
    """Merge payloads where some change leaves a column out; see ``fold.fold_rows``."""
    fillable = table.fillable(table.encodings_in(spec))
    return fold.fold_rows(decoded, table.names(), table.key, fillable, spec.names)
