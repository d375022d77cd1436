"""Put changes in order where rows passed one another on the way to new keys.

Where unique keys are checked at the end of a statement (Oracle; PostgreSQL's deferrable ones),
``UPDATE t SET id = id + 1`` over 1 and 2 sends the row of 1 to key 2 first, and takes the row that
was at 2 away afterwards. By position the delete is the last word on key 2, but it is the older row
that goes. The same two events of key 2 come from a row that goes from 1 to 2 and on to 3 in two
statements, and then key 2 is empty. What tells the two apart is only whether key 2 had a row before
the transaction: a row that comes to a key that has one, and is followed by a delete, stays, because
the first that came is the first that goes, and a key has one row at most when a transaction ends.

So the changes of such a key change places: delete, create, delete, create, or the other way round
where the key had no row. The last position stays the last, so whatever comes again finds the row at
the position that it had. A key change reads what it left out below the place that its delete got
(``below``), not below its own.

Where a transform took the headers off, a create at the place of a delete is a key change
(``with_moves``).

Whether a row was there is known from the batch, below the transaction, and from the table. A change
of such a key that the table is above has come again, with its transaction or without: what was
there before it nobody knows any more, and the table has what it did, so it is left out. Looked for
only where a transaction moves a row to a key and then takes one away, planned only for batches with
such keys.

Limits, stated: a row must have been *moved* to the key that has one; an insert under a deferred
constraint followed by a delete of the older row is read as insert and delete of one row. And events
that no transaction holds together (``transaction.mode=none``) are in the order of their positions,
because what the table knows then may be older than the statement.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lakeingest.frame_schemas import MOVED_UNNAMED, MetadataColumns
from lakeingest.named import all_named

WITHIN = "within"
"""Column: what a change is one with."""

_LIVE = "live"


def within() -> Column:
    """Return the transaction of a change; one that is in none is alone."""
    return F.coalesce("transaction_key", "position")


def passed(changes: DataFrame, key: str, moved: Column) -> DataFrame:
    """Find the keys that a transaction moves a row to and takes one away from afterwards.

    Args:
        changes: ``op``, ``position`` and ``within``.
        key: Name of the column that tells keys apart.
        moved: Condition: a key change created the row.

    Returns:
        ``key`` and ``within``, each pair once.
    """
    came, went = F.when(moved, F.col("position")), F.when(F.col("op") == "d", F.col("position"))
    touched = changes.where(moved | (F.col("op") == "d"))
    ends = touched.groupBy(key, WITHIN).agg(F.min(came).alias("_came"), F.max(went).alias("_went"))
    return ends.where(F.col("_came") < F.col("_went")).select(key, WITHIN)


def with_moves(changes: DataFrame) -> DataFrame:
    """Mark the creates that a key change made and no header names (``MOVED_UNNAMED``).

    Both halves of a key change have one place in the log. Rows of one COPY share a place, too, but
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
    floor: str,
    graves: str,
    names: MetadataColumns,
) -> DataFrame:
    """Let the changes of keys with two rows change places.

    Args:
        decoded: As ``fold.fold_rows`` takes it, with ``within``.
        pairs: ``passed`` of it, by ``key_row``.
        table: The table before the batch; null: it is new.
        key: Names of its key columns.
        floor: Position of the newest truncate; empty: none.
        graves: Up to where a row that the table does not have may be a deleted one; empty: the
            table has all.
        names: Names of the metadata columns.

    Returns:
        The same columns; ``position`` is where a change stands among those of its key, ``below``
        where the row was that a key change moved.
    """
    stored = _stored(pairs.select("key_row").distinct(), table, key, floor, names)
    # Of a hard delete nothing is left in the table; what lies so far back has come again.
    keys = stored.withColumn("stored_at", F.coalesce("stored_at", F.lit(graves)))
    others = decoded.join(keys, "key_row", "left_anti").withColumn("_sent", F.col("position"))
    known = decoded.join(keys.select("key_row", "stored_at"), "key_row")
    new = known.where(F.col("position") > F.col("stored_at")).drop("stored_at")
    # What came twice must not count twice.
    mine = new.dropDuplicates(["key_row", "position", "op"])
    both = mine.join(_before(mine, keys), ["key_row", WITHIN])
    marked = pairs.withColumn("_passed", F.lit(True))
    placed = _placed(both.join(marked, ["key_row", WITHIN], "left"))
    every = others.unionByName(placed.select(*others.columns))
    taken = placed.where(F.col("op") == "d").select(
        F.col("key_row").alias("_from"), F.col("_sent").alias("_at"), F.col("position").alias("_to")
    )
    mine_is = (F.col("moved_from_row") == F.col("_from")) & (F.col("_sent") == F.col("_at"))
    joined = every.join(taken, mine_is, "left")
    return joined.withColumn("below", F.coalesce("_to", "_sent")).select(*decoded.columns)


def _stored(
    keys: DataFrame,
    table: DataFrame | None,
    key: Sequence[str],
    floor: str,
    names: MetadataColumns,
) -> DataFrame:
    """Return ``key_row``, and of its row in the table ``live`` (null: none) and ``stored_at``."""
    if table is None:
        nothing = {_LIVE: F.lit(None).cast("boolean"), "stored_at": F.lit(None).cast("string")}
        return keys.withColumns(nothing)
    rows = table.where(F.col(names.position) > F.lit(floor)).select(
        F.struct(*all_named(key)).alias("_stored_key"),
        (~F.col(names.deleted)).alias(_LIVE),
        F.col(names.position).alias("stored_at"),
    )
    joined = keys.join(rows, F.col("key_row") == F.col("_stored_key"), "left")
    return joined.drop("_stored_key")


def _before(changes: DataFrame, stored: DataFrame) -> DataFrame:
    """Return ``key_row``, ``within`` and ``live``: whether the key had a row before it."""
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
    known = in_turn.join(stored, "key_row")
    nothing = F.array().cast(f"array<struct<{WITHIN}:string,{_LIVE}:boolean>>")
    start = F.struct(F.coalesce(_LIVE, F.lit(False)).alias(_LIVE), nothing.alias("told"))

    def step(state: Column, one: Column) -> Column:
        live = state[_LIVE] | ~one["first_op"].isin("c", "r")
        left = F.when(live, 1).otherwise(0) + one["made"] > 0
        after = (one["last_op"] != "d") | left
        told = F.array(F.struct(one[WITHIN].alias(WITHIN), live.alias(_LIVE)))
        return F.struct(after.alias(_LIVE), F.concat(state["told"], told).alias("told"))

    told = F.explode(F.aggregate("in_turn", start, step)["told"]).alias("told")
    return known.select("key_row", told).select("key_row", "told.*")


def _placed(changes: DataFrame) -> DataFrame:
    """Let each delete take the row that came first, and be before the create of the next one."""
    of_one = Window.partitionBy("key_row", WITHIN)
    so_far = of_one.orderBy("position", "op").rowsBetween(Window.unboundedPreceding, -1)
    gone = F.count_if(F.col("op") == "d").over(so_far)
    come = F.count_if(F.col("op").isin("c", "r")).over(so_far)
    live, is_d, is_u = F.col(_LIVE), F.col("op") == "d", F.col("op") == "u"
    turn = (
        F.when(live & is_d, F.struct(gone + 1, F.lit(0), "position"))
        .when(live & is_u, F.struct(gone, F.lit(2), "position"))
        .when(live, F.struct(come + 1, F.lit(1), "position"))
        .when(is_d, F.struct(gone + 1, F.lit(2), "position"))
        .when(is_u, F.struct(come, F.lit(1), "position"))
        .otherwise(F.struct(come + 1, F.lit(0), "position"))
    )
    ranked = changes.withColumn("_turn", turn)
    nth = F.row_number().over(of_one.orderBy("_turn"))
    places = F.sort_array(F.collect_list("position").over(of_one))
    place = F.when(F.col("_passed"), F.element_at(places, nth)).otherwise(F.col("position"))
    return ranked.withColumn("_sent", F.col("position")).withColumn("position", place)
