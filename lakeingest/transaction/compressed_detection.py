"""Transactions whose rows share one place of the log, though a place is one rows event.

A rows event of a binlog has a ``pos`` and numbers its rows from 0; two of one transaction never
have the same ``pos``, unless the server compressed the transaction (``envelope/compressed.py``
argues why its rows then cannot be ordered). What one rows event may hold is little: inserts, or
deletes, or updates, a change of the key among these being a delete and a create of one number. So
all rows of a table at one place are of one rows event, or tell that they are not:

* more events, a key change counted once, than the highest number has room for;
* creates and deletes, but not as many of one as of the other;
* as many, of the same keys: a key is not changed into itself.

Only whole transactions are judged, of which END has counted every row: with fewer rows any of this
may be because the rest is under way. A transaction that a connector sent in two parts is left
alone; the next one tells. And one row that one incarnation counted twice, always.

What is found is a sign, not every compressed transaction. One rows event per transaction is in
order, compressed or not, and where statements follow one another in a transaction the first
transactions show it. With ``skip.messages.without.change`` a gap in the numbers may hide it.

The rejected way is to look at each key where changes are folded: it finds what does harm and
nothing else, and compares every change of every pipeline once more.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeingest.frame_schemas import INSIDE

SHARED_PLACE = "several statements at one place of the log"


def judged(rows: DataFrame, counts: DataFrame, too_few: str) -> DataFrame:
    """Count as ``completeness.shortfalls`` does, and look at how the rows lie.

    Args:
        rows: ``assigned(transactional(changes))`` with ``INSIDE``.
        counts: ``end_offset``, ``collection``, ``event_count`` and ``begins`` of each END.
        too_few: The reason of a transaction that lacks rows.

    Returns:
        ``end_offset``, ``collection``, ``expected``, ``found``, ``reason`` of those in the way.
    """
    number = F.lit(None).cast("bigint")
    side = F.when(F.col("op") == "c", 1).when(F.col("op") == "d", -1).otherwise(0)
    there = rows.where(F.col("end_offset").isNotNull()).select(
        "end_offset",
        "collection",
        "identity",
        number.alias("expected"),
        number.alias("begins"),
        f"{INSIDE}.*",
        side.cast("bigint").alias("side"),
        F.hash("key").cast("bigint").alias("key"),
        F.when(F.col("incarnation").isNotNull(), F.xxhash64("incarnation")).alias("run"),
    )
    counted = counts.select(
        "end_offset",
        "collection",
        number.alias("identity"),
        F.col("event_count").alias("expected"),
        F.col("begins").alias("begins"),
        *(number.alias(name) for name in ("place", "row", "nth", "side", "key", "run")),
    )
    of_row = (
        # A row counts once however often it came; by transaction, so that one exchange serves all.
        there.unionAll(counted)
        .repartition("end_offset")
        .groupBy("end_offset", "collection", "identity")
        .agg(
            F.sum("expected").alias("expected"),
            F.max("begins").alias("begins"),
            F.min("place").alias("place"),
            F.max("place").alias("other"),
            F.max("row").alias("row"),
            F.max("side").alias("side"),
            F.max("key").alias("key"),
            _twice().alias("twice"),
        )
    )
    seen = of_row.groupBy("end_offset", "collection").agg(
        F.count("identity").alias("found"),
        F.sum("expected").alias("expected"),
        F.max("begins").alias("begins"),
        # All of them told: of a transaction that two versions of Debezium sent, some are not.
        ((F.min("place") == F.max("other")) & (F.count("place") == F.count("identity"))).alias(
            "one_place"
        ),
        F.max("row").alias("row"),
        F.count_if(F.col("side") == 1).alias("creates"),
        F.count_if(F.col("side") == -1).alias("deletes"),
        F.sum(F.col("side") * F.col("key")).alias("keys"),
        F.max("twice").alias("twice"),
    )
    short = F.col("found") < F.col("expected")
    whole = (F.col("begins") == 1) & ~short
    crowded = F.col("twice") | (whole & F.col("one_place") & _not_one_event())
    return (
        seen.withColumn("reason", F.when(crowded, SHARED_PLACE).when(short, too_few))
        .where(F.col("reason").isNotNull())
        .select("end_offset", "collection", "expected", "found", "reason")
    )


def _twice() -> Column:
    """Condition: one incarnation counted the row twice; so it is two rows."""
    one_run = F.min("run") == F.max("run")
    whole_run = F.count("run") == F.count("nth")
    return one_run & whole_run & (F.min("nth") != F.max("nth"))


def _not_one_event() -> Column:
    creates, deletes = F.col("creates"), F.col("deletes")
    changed = F.least(creates, deletes)
    no_room = F.greatest("expected", "found") - changed > F.col("row") + 1
    mixed = changed > 0
    return no_room | (mixed & (creates != deletes)) | (mixed & (F.col("keys") == 0))
