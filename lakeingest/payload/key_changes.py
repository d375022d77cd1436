"""Fill the columns that a primary-key change omits, from the old key's state.

Debezium sends a key change as delete(old) and create(new) at one place of the log. The create has
placeholders for unchanged TOAST values: such a value is the old key's value just below that place.
A header of the create names the old key. If a transform removes the headers, or if their text does
not tell one key from another (``decode.row.header_identifies_key``), the delete at the same place
names the old key (``with_old_keys``); it is in the same transaction.

An earlier key change of the same batch may have moved the row to the old key (chains and swaps). So
the look-up is a hop, and the hop is repeated while it finds another key change. Then ``from_table``
reads the table's rows of all keys on the way, not only of the last key: for a redelivered key
change the table has the row at the new key, and no longer has the old key.

Limit: the fill reads the old key's state as far as it is known when the batch is applied.
Transactions are released in commit order, so the state is complete. Only a mode that later applies
older changes of a *moved* key, for the first time, would need links that the table keeps.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from lakeingest.frame_schemas import LINK, OURS, MetadataColumns
from lakeingest.named import all_named, named
from lakeingest.payload.fold import (
    DELETED_AT,
    MOVED,
    evidence,
    found_value,
    is_value,
    leaves_values_at_old_key,
)
from lakeingest.position import inherited, is_missing, missing_below, present_entries

_KEY, _NEW_KEY, _MOVED_AT = f"{OURS}key", f"{OURS}new_key", f"{OURS}moved_at"


def _slot(name: str) -> str:
    return f"{OURS}slot_{name}"


def with_old_keys(decoded: DataFrame) -> DataFrame:
    """Give creates that omit values the key of the delete at their place of the log.

    Rows of one COPY share a place, too, but none of them is a delete, and none omits a value. If
    there are several deletes, choose none: a missing value is noticed, a wrong one is not.

    Args:
        decoded: As ``fold.fold_rows`` takes it.

    Returns:
        The same columns, with ``moved_from_row`` where a header was missing, and ``moved`` there.
    """
    deletes = decoded.where(F.col("op") == "d").select(
        F.col("position").alias("_at"), F.col("key_row").alias("_old")
    )
    alone = F.when(F.min("_old") == F.max("_old"), F.min("_old"))
    old = deletes.groupBy("_at").agg(alone.alias("_old"))
    unpaired = (
        (F.col("op") == "c") & F.col("unavailable").isNotNull() & F.col("moved_from_row").isNull()
    )
    joined = decoded.join(old, unpaired & (F.col("position") == F.col("_at")), "left")
    old_key = F.coalesce(F.col("moved_from_row"), F.col("_old"))
    moved = F.col("moved") | old_key.isNotNull()
    return joined.withColumns({"moved_from_row": old_key, "moved": moved}).drop("_at", "_old")


def links(payload: DataFrame, key: Sequence[str], fillable: Sequence[str]) -> DataFrame:
    """Select the payloads whose missing columns a primary-key change explains.

    Args:
        payload: Merge payloads.
        key: Names of the columns that identify a payload: the table's key, and ``END`` if there.
        fillable: Names of the columns that can be unavailable.

    Returns:
        ``new_key`` and ``at_key`` (structs), ``moved_at`` and ``below`` (positions), ``way`` (array
        of struct at_key, since, below: keys that had the row, and between which positions),
        ``ended`` (boolean: the batch has no further key change), and per fillable column a slot
        (struct value, position), NULL until a hop finds the value.
    """
    moved = payload.where(F.col(LINK).isNotNull())
    empty = [F.lit(None).cast(_slot_type(payload, name)).alias(_slot(name)) for name in fillable]
    old, position = F.col(f"{LINK}.key_row"), F.col(f"{LINK}.position")
    below = F.col(f"{LINK}.below")
    first = F.array(_stretch(old, F.lit(""), below))
    return moved.select(
        F.struct(*all_named(key)).alias("new_key"),
        old.alias("at_key"),
        position.alias("moved_at"),
        below.alias("below"),
        F.slice(first, 1, 0).alias("way"),
        F.lit(False).alias("ended"),
        *empty,
    )


def chained(payload: DataFrame, decoded: DataFrame) -> DataFrame:
    """Select the links (``links``) whose old key may have its row from another key in the batch.

    For the others, one hop is enough.
    """
    old_keys = payload.where(F.col(LINK).isNotNull()).select(F.col(f"{LINK}.key_row"))
    moves = decoded.where(leaves_values_at_old_key()).select("key_row")
    return old_keys.join(moves, "key_row", "left_semi")


def _stretch(at_key: Column, since: Column, below: Column) -> Column:
    return F.struct(at_key.alias("at_key"), since.alias("since"), below.alias("below"))


def _slot_type(payload: DataFrame, name: str) -> StructType:
    value = StructField("value", payload.schema[name].dataType)
    return StructType([value, StructField("position", StringType())])


def not_stored(
    pending: DataFrame, table: DataFrame, key: Sequence[str], names: MetadataColumns
) -> DataFrame:
    """Drop redelivered key changes: the table already has their effect.

    Their old key may have had other rows since, and only a part of its changes may be in the batch.
    """
    rows = table.select(F.struct(*all_named(key)).alias("_k"), F.col(names.position).alias("_p"))
    new_key = F.struct(*(F.col("new_key").getField(name).alias(name) for name in key))
    there = (new_key == F.col("_k")) & (F.col("_p") >= F.col("moved_at"))
    return pending.join(rows, there, "left_anti")


def hop(pending: DataFrame, decoded: DataFrame, fillable: Sequence[str]) -> DataFrame:
    """Look up each pending row's old key once, among the batch's changes below the key change.

    The columns are those of ``links``. If an earlier key change moved a row to the old key, the row
    continues from the key before that. If the batch has no further key change, the row is
    ``ended``.
    """
    pending_columns = ["at_key", "moved_at", "_under", "way", *(_slot(name) for name in fillable)]
    changes = decoded.select(
        F.col("key_row").alias("_k"),
        "op",
        "position",
        "row",
        "unavailable",
        "moved_from_row",
        "below",
    )
    renamed = pending.withColumnRenamed("below", "_under")
    joined = renamed.join(
        changes, (F.col("at_key") == F.col("_k")) & (F.col("position") < F.col("_under")), "left"
    )
    grouped = joined.groupBy("new_key").agg(
        *(F.first(named(name)).alias(name) for name in pending_columns),
        *(column.alias(name) for name, column in evidence(fillable).items()),
    )
    moved_at = F.coalesce(F.col(f"{MOVED}.position"), F.lit(""))
    has_next = F.col(MOVED).isNotNull() & (moved_at > F.coalesce(F.col(DELETED_AT), F.lit("")))
    slots = [
        F.coalesce(named(_slot(name)), F.when(is_value(name), found_value(name))).alias(_slot(name))
        for name in fillable
    ]
    since = F.when(has_next, moved_at).otherwise(F.lit(""))
    stretch = _stretch(F.col("at_key"), since, F.col("_under"))
    return grouped.select(
        "new_key",
        F.concat(F.col("way"), F.array(stretch)).alias("way"),
        F.when(has_next, F.col(f"{MOVED}.key_row")).otherwise(F.col("at_key")).alias("at_key"),
        "moved_at",
        F.when(has_next, F.col(f"{MOVED}.below")).otherwise(F.col("_under")).alias("below"),
        (~has_next).alias("ended"),
        *slots,
    )


def from_table(
    pending: DataFrame,
    table: DataFrame,
    key: Sequence[str],
    fillable: Sequence[str],
    names: MetadataColumns,
) -> DataFrame:
    """Fill the columns without a value in the batch from the table's rows of the old keys.

    Returns:
        ``new_key``, ``moved_at`` and a slot per fillable column.
    """
    rows = table.where(~F.col(names.deleted)).select(
        F.struct(*all_named(key)).alias("_k"),
        F.col(names.position).alias("_p"),
        F.col(names.column_positions).alias("_m"),
        *(named(name).alias(f"_t_{name}") for name in fillable if name in table.columns),
    )
    slots = [_slot(name) for name in fillable]
    old_keys = pending.select(
        "new_key", "moved_at", *map(named, slots), F.explode("way").alias("at")
    )
    # A row at or above the key change is the key's next row; below the stretch, its former row.
    same_row = (
        (F.col("at.at_key") == F.col("_k"))
        & (F.col("_p") < F.col("at.below"))
        & (F.col("_p") >= F.col("at.since"))
    )
    joined = old_keys.join(rows, same_row, "left")
    newer_slots = [_newer_slot(name, name in table.columns) for name in fillable]
    return (
        joined.select("new_key", "moved_at", *newer_slots)
        .groupBy("new_key")
        .agg(
            F.first("moved_at").alias("moved_at"),
            *(F.max_by(named(slot), named(slot)["position"]).alias(slot) for slot in slots),
        )
    )


def _newer_slot(name: str, in_table: bool) -> Column:
    """Return the batch's value or the table's, whichever is newer."""
    slot = named(_slot(name))
    if not in_table:  # this batch adds the column
        return slot
    at = F.coalesce(F.element_at(F.col("_m"), name), F.col("_p"))
    usable = F.col("_k").isNotNull() & ~is_missing(at)
    newer = usable & (at > F.coalesce(slot["position"], F.lit("")))
    value = F.struct(named(f"_t_{name}").alias("value"), at.alias("position"))
    return F.when(newer, value).otherwise(slot).alias(_slot(name))


def with_moved(
    payload: DataFrame,
    resolved: DataFrame,
    key: Sequence[str],
    fillable: Sequence[str],
    names: MetadataColumns,
) -> DataFrame:
    """Put the values of ``from_table`` into their payloads."""
    renamed = resolved.withColumnsRenamed({"new_key": _NEW_KEY, "moved_at": _MOVED_AT})
    joined = payload.withColumn(_KEY, F.struct(*all_named(key))).join(
        renamed, F.col(_KEY) == F.col(_NEW_KEY), "left"
    )
    positions = F.col(names.column_positions)
    values: dict[str, Column] = {}
    entries = []
    for name in fillable:
        slot, at = named(_slot(name)), F.element_at(positions, name)
        is_missing_here = at == missing_below(F.col(LINK)["position"])
        is_filled = F.col(LINK).isNotNull() & is_missing_here & slot.isNotNull()
        values[name] = F.when(is_filled, slot["value"]).otherwise(named(name))
        filled_at = inherited(F.col(_MOVED_AT), slot["position"])
        entry = F.when(is_filled, filled_at).otherwise(at)
        entries.append(F.struct(F.lit(name).alias("key"), entry.alias("value")))
    older = present_entries(entries)
    values[names.column_positions] = F.when(F.size(older) > 0, older)
    columns = (values.get(name, named(name)).alias(name) for name in payload.columns)
    return joined.select(*columns)
