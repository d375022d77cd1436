"""Which transactions are complete: by distinct rows, and by what has been looked at.

A transaction is complete when its END was read **and** every ingested collection has at least the
distinct rows that END counted **and** every partition was read past it: up to the high watermark
taken after END was read, or to a row of a later transaction (``cut.read_past``). The last is needed
because a count may be too low (a connector killed in mid-transaction, before Debezium 3.7.0): a
partition is written in commit order by each incarnation, so a later transaction's row proves that
nothing of this one is still to come there. With it a backlog can be read in windows instead of up
to today's watermarks every time.

Where BEGIN was repeated the count is that of the last incarnation alone, so some incarnation must
have it *exactly*; more rows of an earlier incarnation must not stand in for rows that are still
under way.

The rejected way is to trust the count of ``total_order`` values: see ``mariadb-kill``.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from lakeingest.shape import INSIDE, Kind
from lakeingest.transaction import crowded

TOO_FEW_ROWS = "fewer rows than END counts"
NO_WHOLE_INCARNATION = "BEGIN repeated and no incarnation of the connector sent all rows"


def transactional(changes: DataFrame) -> DataFrame:
    """Keep the changes that belong to a source transaction."""
    return changes.where(
        F.col("kind").isin(Kind.ROW, Kind.TRUNCATE) & F.col("transaction_key").isNotNull()
    )


def assigned(changes: DataFrame, boundaries: DataFrame) -> DataFrame:
    """Give each transactional change its transaction's ``end_offset`` (null: none read yet).

    A key may come again (PostgreSQL's xid wraps around): the row then belongs to the first END
    above it.
    """
    ends = boundaries.select("transaction_key", "end_position", "end_offset")
    lower = F.lag("end_position", 1, "").over(_by_key())
    spans = ends.withColumn("_lower", lower)
    same = changes["transaction_key"] == spans["transaction_key"]
    within = (changes["position"] >= spans["_lower"]) & (
        changes["position"] < spans["end_position"]
    )
    return changes.join(F.broadcast(spans), same & within, "left").select(
        *(changes[name] for name in changes.columns), spans["end_offset"]
    )


def _by_key() -> WindowSpec:
    return Window.partitionBy("transaction_key").orderBy("end_position")


def shortfalls(rows: DataFrame, boundaries: DataFrame, is_counted: Column) -> DataFrame:
    """Find the transactions that have fewer rows than END counts.

    Args:
        rows: ``assigned(transactional(changes))``.
        boundaries: ``shape.BOUNDARY``.
        is_counted: Over column ``data_collection``: whether its rows are read by this pipeline and
            so must be there; others are subtracted.

    Returns:
        ``end_offset``, ``collection``, ``expected``, ``found``, ``reason``; a transaction may have
        several. Where rows say how they lie (``shape.INSIDE``), those are among them that lie as no
        transaction should (``crowded.SHARED_PLACE``).
    """
    if INSIDE in rows.columns:
        counts = _counts(boundaries, is_counted, "begins")
        return crowded.judged(
            rows, counts.withColumnRenamed("data_collection", "collection"), TOO_FEW_ROWS
        )
    there = rows.where(F.col("end_offset").isNotNull()).select(
        "end_offset", "collection", "identity", F.lit(None).cast("bigint").alias("expected")
    )
    counted = _counts(boundaries, is_counted).select(
        "end_offset",
        F.col("data_collection").alias("collection"),
        F.lit(None).cast("bigint").alias("identity"),
        F.col("event_count").alias("expected"),
    )
    # Together and by transaction: one exchange serves the distinct count, its sum and the match,
    # where a join of two aggregations takes four (a third of the time, measured).
    return (
        there.unionAll(counted)
        .repartition("end_offset")
        .groupBy("end_offset", "collection")
        .agg(F.count_distinct("identity").alias("found"), F.sum("expected").alias("expected"))
        .where(F.col("found") < F.col("expected"))
        .withColumn("reason", F.lit(TOO_FEW_ROWS))
        .select(*_COLUMNS)
    )


def interrupted(rows: DataFrame, boundaries: DataFrame, is_counted: Column) -> DataFrame:
    """Find transactions with a repeated BEGIN of which no incarnation sent exactly END's rows.

    Only worth a job where some boundary has ``begins > 1``. Columns as ``shortfalls``.
    """
    repeated = boundaries.where((F.col("begins") > 1) & ~F.col("implied"))
    counted = (
        _counts(repeated, is_counted)
        .groupBy("end_offset")
        .agg(F.sum("event_count").alias("expected"))
    )
    by_incarnation = (
        rows.join(F.broadcast(repeated.select("end_offset")), "end_offset", "left_semi")
        .withColumn("data_collection", F.col("collection"))
        .where(is_counted)
        .groupBy("end_offset", F.coalesce("incarnation", F.lit("")).alias("incarnation"))
        .agg(F.count_distinct("identity").alias("found"), F.max("position").alias("_reached"))
        # END's count is that of an incarnation that got to the last row; one that was killed
        # half-way may happen to be of the same size.
        .withColumn("_furthest", F.max("_reached").over(Window.partitionBy("end_offset")))
        .where(F.col("_reached") == F.col("_furthest"))
    )
    whole = by_incarnation.join(counted, "end_offset").where(F.col("found") == F.col("expected"))
    return (
        counted.join(whole.select("end_offset"), "end_offset", "left_anti")
        .where(F.col("expected") > 0)
        .withColumn("collection", F.lit(None).cast("string"))
        .withColumn("found", F.lit(None).cast("bigint"))
        .withColumn("reason", F.lit(NO_WHOLE_INCARNATION))
        .select(*_COLUMNS)
    )


def _counts(boundaries: DataFrame, is_counted: Column, *more: str) -> DataFrame:
    """What END counted per collection: ``end_offset``, ``data_collection``, ``event_count``."""
    counts = boundaries.select("end_offset", *more, F.explode("collections").alias("_c"))
    return counts.select("end_offset", *more, "_c.*").where(is_counted)


_COLUMNS = ("end_offset", "collection", "expected", "found", "reason")
