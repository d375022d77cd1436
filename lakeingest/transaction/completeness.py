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

A row without a key counts by its place in the log, which repeats with it. Rows of one COPY share a
place; one incarnation tells them apart, so a place has at least as many rows as one incarnation
sent of it (``shortfalls_by_incarnation``, asked only where counting places was not enough).

Before Debezium 3.3 no row says which incarnation sent it. In log order ``total_order`` grows within
one, and an incarnation that goes on in mid-transaction starts at 1 again: the rows behind the last
step back are the last one's. Of a row that several sent, the least number counts: the last one
began at the same row as those before it or later. (Each goes on from an offset that was committed,
and those never go back.)

The rejected way is to trust the count of ``total_order`` values: see ``mariadb-kill``. Rejected,
too, is to count rows without a key by run and ``total_order``: repeated rows stood in for rows that
were lost with the connector.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from lakeingest.frame_schemas import INSIDE, Kind
from lakeingest.transaction import compressed_detection

TOO_FEW_ROWS = "fewer rows than END counts"
TOO_FEW_PLACES = "fewer places than END counts rows, of which some have no key"
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
        boundaries: ``BOUNDARY``.
        is_counted: Over column ``data_collection``: whether its rows are read by this pipeline and
            so must be there; others are subtracted.

    Returns:
        ``end_offset``, ``collection``, ``expected``, ``found``, ``reason``; a transaction may have
        several. Where rows say how they lie (``INSIDE``), those are among them that lie as no
        transaction should (``compressed_detection.SHARED_PLACE``). ``TOO_FEW_PLACES``: not for
        certain.
    """
    rows = rows.withColumn("identity", F.when(_keyless(), _place()).otherwise(F.col("identity")))
    if INSIDE in rows.columns:
        counts = _counts(boundaries, is_counted, "begins")
        return compressed_detection.judged(
            rows, counts.withColumnRenamed("data_collection", "collection"), TOO_FEW_ROWS
        )
    there = rows.where(F.col("end_offset").isNotNull()).select(
        "end_offset",
        "collection",
        "identity",
        F.lit(None).cast("bigint").alias("expected"),
        _keyless().alias("keyless"),
    )
    counted = _counts(boundaries, is_counted).select(
        "end_offset",
        F.col("data_collection").alias("collection"),
        F.lit(None).cast("bigint").alias("identity"),
        F.col("event_count").alias("expected"),
        F.lit(False).alias("keyless"),
    )
    # Together and by transaction: one exchange serves the distinct count, its sum and the match,
    # where a join of two aggregations takes four (a third of the time, measured).
    return (
        there.unionAll(counted)
        .repartition("end_offset")
        .groupBy("end_offset", "collection")
        .agg(
            F.count_distinct("identity").alias("found"),
            F.sum("expected").alias("expected"),
            F.max("keyless").alias("keyless"),
        )
        .where(F.col("found") < F.col("expected"))
        .withColumn("reason", F.when(F.col("keyless"), TOO_FEW_PLACES).otherwise(TOO_FEW_ROWS))
        .select(*_COLUMNS)
    )


def shortfalls_by_incarnation(
    rows: DataFrame, boundaries: DataFrame, is_counted: Column
) -> DataFrame:
    """Count as ``shortfalls`` does, and of a place as many rows as one incarnation sent of it.

    Where rows do not name their incarnation and one number stands for two places of a transaction,
    it was sent by several: a place then counts as one row.
    """
    there = rows.where(F.col("end_offset").isNotNull())
    of_number = Window.partitionBy("end_offset", "nth")
    unnamed = F.col("incarnation").isNull()
    twice = unnamed & (F.min("place").over(of_number) != F.max("place").over(of_number))
    of_transaction = Window.partitionBy("end_offset")
    placed = (
        there.withColumn("place", F.when(_keyless(), _place()).otherwise(F.col("identity")))
        .withColumn("twice", F.coalesce(twice, F.lit(False)))
        .withColumn("mixed", F.max("twice").over(of_transaction))
    )
    one = F.when(F.col("mixed") & unnamed, F.col("place")).otherwise(F.col("identity"))
    sent = placed.groupBy("end_offset", "collection", "place", "incarnation").agg(
        F.count_distinct(one).alias("times")
    )
    found = (
        sent.groupBy("end_offset", "collection", "place")
        .agg(F.max("times").alias("times"))
        .groupBy("end_offset", "collection")
        .agg(F.sum("times").alias("found"))
    )
    counted = _counts(boundaries, is_counted).select(
        "end_offset",
        F.col("data_collection").alias("collection"),
        F.col("event_count").alias("expected"),
    )
    return (
        counted.join(found, ["end_offset", "collection"], "left")
        .withColumn("found", F.coalesce("found", F.lit(0).cast("bigint")))
        .where(F.col("found") < F.col("expected"))
        .withColumn("reason", F.lit(TOO_FEW_ROWS))
        .select(*_COLUMNS)
    )


def sent_once(changes: DataFrame, boundaries: DataFrame) -> DataFrame:
    """Let rows without a key that several unnamed incarnations sent be one by their place.

    Each gave a row a number of its own, so that rows that came again would be other rows. Of a
    COPY, rows that are equal share a place, too: of those that an earlier incarnation alone sent
    one is left, and nothing tells how many there were.

    Args:
        changes: ``CHANGE`` with ``end_offset``.
        boundaries: ``BOUNDARY``. Only worth a job where some has ``begins > 1``.
    """
    repeated = boundaries.where((F.col("begins") > 1) & ~F.col("implied")).select("end_offset")
    unnamed = F.col("incarnation").isNull()
    place = F.when(_keyless(), _place()).otherwise(F.col("identity"))
    several = (
        transactional(changes)
        .where(unnamed)
        .join(F.broadcast(repeated), "end_offset", "left_semi")
        .groupBy("end_offset", "nth")
        .agg(F.min(place).alias("_first"), F.max(place).alias("_last"))
        .where(F.col("_first") != F.col("_last"))
        .select("end_offset", F.lit(True).alias("_several"))
        .distinct()
    )
    once = F.col("_several").isNotNull() & unnamed & _keyless()
    return (
        changes.join(F.broadcast(several), "end_offset", "left")
        .withColumn("identity", F.when(once, _place()).otherwise(F.col("identity")))
        .select(*changes.columns)
    )


def _keyless() -> Column:
    return F.col("key").isNull() & (F.col("op") != "t")


def _place() -> Column:
    return F.xxhash64("transaction_key", "position", "collection", "op")


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
    mine = (
        rows.join(F.broadcast(repeated.select("end_offset")), "end_offset", "left_semi")
        .withColumn("data_collection", F.col("collection"))
        .where(is_counted)
    )
    named = mine.where(F.col("incarnation").isNotNull())
    unnamed = _by_number(mine.where(F.col("incarnation").isNull()))
    by_incarnation = (
        named.select(*unnamed.columns)
        .unionAll(unnamed)
        .groupBy("end_offset", "incarnation")
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


def _by_number(rows: DataFrame) -> DataFrame:
    """Number the incarnations of rows that name none; a row that several sent is the last one's.

    Columns: ``end_offset``, ``incarnation``, ``identity``, ``position``.
    """
    identity = F.when(_keyless(), _place()).otherwise(F.col("identity")).alias("identity")
    once = rows.groupBy("end_offset", identity, "position").agg(F.min("nth").alias("nth"))
    in_log = Window.partitionBy("end_offset").orderBy("position", "nth")
    back = F.coalesce(F.col("nth") <= F.lag("nth").over(in_log), F.lit(False))
    return (
        once.withColumn("_back", back.cast("int"))
        .withColumn("incarnation", F.sum("_back").over(in_log).cast("string"))
        .select("end_offset", "incarnation", "identity", "position")
    )


def _counts(boundaries: DataFrame, is_counted: Column, *more: str) -> DataFrame:
    """What END counted per collection: ``end_offset``, ``data_collection``, ``event_count``."""
    counts = boundaries.select("end_offset", *more, F.explode("collections").alias("_c"))
    return counts.select("end_offset", *more, "_c.*").where(is_counted)


_COLUMNS = ("end_offset", "collection", "expected", "found", "reason")
