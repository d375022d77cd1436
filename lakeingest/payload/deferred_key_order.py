"""Put the changes of a key in order that has two rows for a while: the deferred key order.

Some databases check unique keys only at the end of a statement (Oracle; PostgreSQL for deferrable
constraints). There ``UPDATE t SET id = id + 1`` over rows 1 and 2 first moves row 1 to key 2, and
then takes away the row that was at key 2. By position, the delete is the last change of key 2. But
it deletes the older row; the row that came from key 1 stays.

The same two events of key 2 also come from a row that moves from 1 to 2 and on to 3 in two
statements. Then key 2 is empty at the end. Only one fact separates the two cases: whether key 2 had
a row before the transaction. If it had one, the row that moves there stays, although a delete
follows: the first row that came is the first one to go, and a key has at most one row when a
transaction ends.

So the changes of such a key swap places: delete, create, delete, create; or the other way round if
the key had no row. The last position stays the last one, so a redelivered change finds the row at
the position that it had. A key change reads the values that it omits below the new place of its
delete (column ``below``), not below its own place.

If a transform removes the headers, a create at the place of a delete is a key change
(``with_moves``).

The batch's changes below the transaction, and the table, say whether the key had a row. A
redelivered change of such a key (``key_lookup.with_table_row``) is left out. The code looks for
such keys only in transactions that move a row to a key and then take one away. It plans the step
only for batches that have such keys.

Limits:

* The row must have *moved* to the key that has one. An insert under a deferred constraint, followed
  by a delete of the older row, reads as insert and delete of one row.
* Events that no transaction groups (``transaction.mode=none``) stay in the order of their
  positions: the table's state at that time may be older than the statement.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lakeingest.frame_schemas import MOVED_UNNAMED, MetadataColumns
from lakeingest.payload.key_lookup import LIVE, STORED_AT, with_table_row

WITHIN = "within"
"""Column: the transaction of a change, or its position where it has none."""


def within() -> Column:
    """Return the transaction's key of a change; without a transaction, its own position."""
    return F.coalesce("transaction_key", "position")


def exchanged_keys(changes: DataFrame, key: str, moved: Column) -> DataFrame:
    """Find the keys that a transaction first moves a row to and later takes a row from.

    Args:
        changes: ``op``, ``position`` and ``within``.
        key: Name of the column that identifies a key.
        moved: Condition: a key change created the row.

    Returns:
        ``key`` and ``within``, each pair once.
    """
    came, went = F.when(moved, F.col("position")), F.when(F.col("op") == "d", F.col("position"))
    both_halves = changes.where(moved | (F.col("op") == "d"))
    ends = both_halves.groupBy(key, WITHIN).agg(
        F.min(came).alias("_came"), F.max(went).alias("_went")
    )
    return ends.where(F.col("_came") < F.col("_went")).select(key, WITHIN)


def with_moves(changes: DataFrame) -> DataFrame:
    """Mark the creates of key changes that no header names (``MOVED_UNNAMED``).

    Both halves of a key change have one place in the log. Rows of one COPY also share a place, but
    none of them is a delete.

    Args:
        changes: ``CHANGE`` of one table.
    """
    deleted = F.max(F.col("op") == "d").over(Window.partitionBy("position"))
    made = (F.col("op") == "c") & F.col("moved_from").isNull() & deleted
    return changes.withColumn(MOVED_UNNAMED, F.coalesce(made, F.lit(False)))


def in_order(
    decoded: DataFrame,
    pairs: DataFrame,
    table: DataFrame | None,
    key: Sequence[str],
    tombstones_to: str,
    names: MetadataColumns,
) -> DataFrame:
    """Let the changes of keys with two rows swap places.

    Args:
        decoded: As ``fold.fold_rows`` takes it, with ``within``.
        pairs: ``exchanged_keys`` of ``decoded``, by ``key_row``.
        table: As ``key_lookup.with_table_row`` takes it, and the following.
        key: Names of its key columns.
        tombstones_to: Position up to which a row that the table lacks may be a deleted one.
        names: Names of the metadata columns.

    Returns:
        The same columns. ``position`` is the place of a change among the changes of its key.
        ``below`` is the position below which the row of a key change had its old key.
    """
    ordered_keys = pairs.select("key_row").distinct()
    keys = with_table_row(ordered_keys, table, key, tombstones_to, names)
    other_keys = decoded.join(keys, "key_row", "left_anti").withColumn("_sent", F.col("position"))
    with_stored = decoded.join(keys.select("key_row", STORED_AT), "key_row")
    new = with_stored.where(F.col("position") > F.col(STORED_AT)).drop(STORED_AT)
    # Count a repeated change once.
    distinct = new.dropDuplicates(["key_row", "position", "op"])
    with_live = distinct.join(_row_before(distinct, keys), ["key_row", WITHIN])
    marked = pairs.withColumn("_exchanged", F.lit(True))
    placed = _swap_places(with_live.join(marked, ["key_row", WITHIN], "left"))
    all_changes = other_keys.unionByName(placed.select(*other_keys.columns))
    deletes = placed.where(F.col("op") == "d").select(
        F.col("key_row").alias("_from"), F.col("_sent").alias("_at"), F.col("position").alias("_to")
    )
    is_its_delete = (F.col("moved_from_row") == F.col("_from")) & (F.col("_sent") == F.col("_at"))
    joined = all_changes.join(deletes, is_its_delete, "left")
    return joined.withColumn("below", F.coalesce("_to", "_sent")).select(*decoded.columns)


def _row_before(changes: DataFrame, stored: DataFrame) -> DataFrame:
    """Return ``key_row``, ``within`` and ``live``: whether the key had a row before that."""
    made = F.col("op").isin("c", "r")
    transactions = changes.groupBy("key_row", WITHIN).agg(
        F.min("position").alias("first"),
        F.min_by("op", "position").alias("first_op"),
        F.max_by("op", "position").alias("last_op"),
        (F.count_if(made) - F.count_if(F.col("op") == "d")).alias("made"),
    )
    parts = ("first", WITHIN, "first_op", "last_op", "made")
    in_turn = transactions.groupBy("key_row").agg(
        F.sort_array(F.collect_list(F.struct(*parts))).alias("in_turn")
    )
    with_row = in_turn.join(stored, "key_row")
    nothing = F.array().cast(f"array<struct<{WITHIN}:string,{LIVE}:boolean>>")
    start = F.struct(F.coalesce(LIVE, F.lit(False)).alias(LIVE), nothing.alias("turns"))

    def step(state: Column, one: Column) -> Column:
        live = state[LIVE] | ~one["first_op"].isin("c", "r")
        left = F.when(live, 1).otherwise(0) + one["made"] > 0
        after = (one["last_op"] != "d") | left
        steps = F.array(F.struct(one[WITHIN].alias(WITHIN), live.alias(LIVE)))
        return F.struct(after.alias(LIVE), F.concat(state["turns"], steps).alias("turns"))

    steps = F.explode(F.aggregate("in_turn", start, step)["turns"]).alias("turns")
    return with_row.select("key_row", steps).select("key_row", "turns.*")


def _swap_places(changes: DataFrame) -> DataFrame:
    """Let each delete take the row that came first, before the create of the next row."""
    of_one = Window.partitionBy("key_row", WITHIN)
    so_far = of_one.orderBy("position", "op").rowsBetween(Window.unboundedPreceding, -1)
    deletes_so_far = F.count_if(F.col("op") == "d").over(so_far)
    creates_so_far = F.count_if(F.col("op").isin("c", "r")).over(so_far)
    live, is_d, is_u = F.col(LIVE), F.col("op") == "d", F.col("op") == "u"
    turn = (
        F.when(live & is_d, F.struct(deletes_so_far + 1, F.lit(0), "position"))
        .when(live & is_u, F.struct(deletes_so_far, F.lit(2), "position"))
        .when(live, F.struct(creates_so_far + 1, F.lit(1), "position"))
        .when(is_d, F.struct(deletes_so_far + 1, F.lit(2), "position"))
        .when(is_u, F.struct(creates_so_far, F.lit(1), "position"))
        .otherwise(F.struct(creates_so_far + 1, F.lit(0), "position"))
    )
    ranked = changes.withColumn("_turn", turn)
    nth = F.row_number().over(of_one.orderBy("_turn"))
    places = F.sort_array(F.collect_list("position").over(of_one))
    place = F.when(F.col("_exchanged"), F.element_at(places, nth)).otherwise(F.col("position"))
    return ranked.withColumn("_sent", F.col("position")).withColumn("position", place)
