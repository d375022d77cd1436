"""Fill the columns that a primary-key change left out, from the old key's state.

Debezium sends a key change as delete(old) and create(new) at one place of the log, and the create
has placeholders for unchanged TOAST values: its value is the old key's, as it was just below that
place. The create names the old key in a header; where a transform took the headers off, or where
their text does not tell one key from another (``decode.row.header_tells``), the delete at the same
place names it (``paired``), which is in the same transaction. The old key may itself have been
moved there in the same batch (chains and swaps), so the look-up is a hop that is repeated while it
finds another move. Then the table's rows of all keys on the way are asked, not only of the last: a
move that comes again is in the table already, and the key that it came from is there no more.

Limit, stated: the fill reads the old key's state as far as it is known when the batch is applied.
Transactions are released in commit order, so it is all there; only a mode that applies older,
never seen changes of a *moved* key later would need links kept in the table.
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
    found,
    found_value,
)
from lakeingest.position import inherited, is_missing, missing_below

_KEY, _NEW_KEY, _MOVED_AT = f"{OURS}key", f"{OURS}new_key", f"{OURS}moved_at"


def _slot(name: str) -> str:
    return f"{OURS}slot_{name}"


def paired(decoded: DataFrame) -> DataFrame:
    """Give creates that leave values out the key of the delete at their place of the log.

    Rows of one COPY share a place, too, but none of them is a delete, and none leaves a value out.
    Where there are several deletes, none is chosen: a missing value is noticed, a wrong one is not.

    Args:
        decoded: As ``fold.fold_rows`` takes it.

    Returns:
        The same, with ``moved_from_row`` where a header was missing, and ``moved`` there.
    """
    deletes = decoded.where(F.col("op") == "d").select(
        F.col("position").alias("_at"), F.col("key_row").alias("_old")
    )
    alone = F.when(F.min("_old") == F.max("_old"), F.min("_old"))
    old = deletes.groupBy("_at").agg(alone.alias("_old"))
    lonely = (
        (F.col("op") == "c") & F.col("unavailable").isNotNull() & F.col("moved_from_row").isNull()
    )
    joined = decoded.join(old, lonely & (F.col("position") == F.col("_at")), "left")
    filled = F.coalesce(F.col("moved_from_row"), F.col("_old"))
    moved = F.col("moved") | filled.isNotNull()
    return joined.withColumns({"moved_from_row": filled, "moved": moved}).drop("_at", "_old")


def links(payload: DataFrame, key: Sequence[str], fillable: Sequence[str]) -> DataFrame:
    """Select the payloads whose missing columns a primary-key change stands behind.

    Returns:
        ``new_key`` and ``at_key`` (structs), ``moved_at`` and ``below`` (positions), ``way`` (array
        of struct at_key, since, below: keys that had the row, and between which positions),
        ``ended`` (boolean: nothing more in this batch), and a slot (struct value, position) per
        fillable column, null while it is not found.
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


def _stretch(at_key: Column, since: Column, below: Column) -> Column:
    return F.struct(at_key.alias("at_key"), since.alias("since"), below.alias("below"))


def _slot_type(payload: DataFrame, name: str) -> StructType:
    value = StructField("value", payload.schema[name].dataType)
    return StructType([value, StructField("position", StringType())])


def not_stored(
    pending: DataFrame, table: DataFrame, key: Sequence[str], names: MetadataColumns
) -> DataFrame:
    """Leave key changes out that have come again: the table has what they moved.

    Their old key may have had other rows since, and only part of its changes may be here.
    """
    rows = table.select(F.struct(*all_named(key)).alias("_k"), F.col(names.position).alias("_p"))
    there = (F.col("new_key") == F.col("_k")) & (F.col("_p") >= F.col("moved_at"))
    return pending.join(rows, there, "left_anti")


def hop(pending: DataFrame, decoded: DataFrame, fillable: Sequence[str]) -> DataFrame:
    """Look once for each pending row's old key among the batch's changes below the move.

    Columns as ``links``; a row whose old key was itself moved there goes on from that key, one
    for which the batch has no further move is ``ended``.
    """
    held = ["at_key", "moved_at", "_under", "way", *(_slot(name) for name in fillable)]
    changes = decoded.select(
        F.col("key_row").alias("_k"),
        "op",
        "position",
        "row",
        "unavailable",
        "moved_from_row",
        "below",
    )
    asked = pending.withColumnRenamed("below", "_under")
    joined = asked.join(
        changes, (F.col("at_key") == F.col("_k")) & (F.col("position") < F.col("_under")), "left"
    )
    seen = joined.groupBy("new_key").agg(
        *(F.first(named(name)).alias(name) for name in held), *evidence(fillable)
    )
    moved_at = F.coalesce(F.col(f"{MOVED}.position"), F.lit(""))
    goes_on = F.col(MOVED).isNotNull() & (moved_at > F.coalesce(F.col(DELETED_AT), F.lit("")))
    slots = [
        F.coalesce(named(_slot(name)), F.when(found(name), found_value(name))).alias(_slot(name))
        for name in fillable
    ]
    since = F.when(goes_on, moved_at).otherwise(F.lit(""))
    stretch = _stretch(F.col("at_key"), since, F.col("_under"))
    return seen.select(
        "new_key",
        F.concat(F.col("way"), F.array(stretch)).alias("way"),
        F.when(goes_on, F.col(f"{MOVED}.key_row")).otherwise(F.col("at_key")).alias("at_key"),
        "moved_at",
        F.when(goes_on, F.col(f"{MOVED}.below")).otherwise(F.col("_under")).alias("below"),
        (~goes_on).alias("ended"),
        *slots,
    )


def from_table(
    pending: DataFrame,
    table: DataFrame,
    key: Sequence[str],
    fillable: Sequence[str],
    names: MetadataColumns,
) -> DataFrame:
    """Fill what the batch did not know from the table's rows of the old keys.

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
    asked = pending.select("new_key", "moved_at", *map(named, slots), F.explode("way").alias("at"))
    # A row at or above the move is the key's next row, one below the stretch its former one.
    same_row = (
        (F.col("at.at_key") == F.col("_k"))
        & (F.col("_p") < F.col("at.below"))
        & (F.col("_p") >= F.col("at.since"))
    )
    joined = asked.join(rows, same_row, "left")
    found_there = [_newer_slot(name, name in table.columns) for name in fillable]
    return (
        joined.select("new_key", "moved_at", *found_there)
        .groupBy("new_key")
        .agg(
            F.first("moved_at").alias("moved_at"),
            *(F.max_by(named(slot), named(slot)["position"]).alias(slot) for slot in slots),
        )
    )


def _newer_slot(name: str, in_table: bool) -> Column:
    """Return the batch's value or the table's, whichever is newer."""
    slot = named(_slot(name))
    if not in_table:  # new in this batch
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
    """Put the values found by ``from_table`` into their payloads."""
    ours = resolved.withColumnsRenamed({"new_key": _NEW_KEY, "moved_at": _MOVED_AT})
    joined = payload.withColumn(_KEY, F.struct(*all_named(key))).join(
        ours, F.col(_KEY) == F.col(_NEW_KEY), "left"
    )
    positions = F.col(names.column_positions)

    def wanted(name: str) -> Column:
        return (
            F.col(LINK).isNotNull()
            & (F.element_at(positions, name) == missing_below(F.col(LINK)["position"]))
            & named(_slot(name)).isNotNull()
        )

    entries = F.map_from_arrays(
        F.array(*(F.lit(name) for name in fillable)),
        F.array(
            *(
                F.when(
                    wanted(name), inherited(F.col(_MOVED_AT), named(_slot(name))["position"])
                ).otherwise(F.element_at(positions, name))
                for name in fillable
            )
        ),
    )
    kept = F.map_filter(entries, lambda _, value: value.isNotNull())
    values = [
        F.when(wanted(name), named(_slot(name))["value"]).otherwise(named(name)).alias(name)
        if name in fillable
        else named(name)
        for name in payload.columns
        if name != names.column_positions
    ]
    merged = joined.select(
        *values,
        F.when(F.size(kept) > 0, kept).alias(names.column_positions),
    )
    return merged.select(*all_named(payload.columns))
