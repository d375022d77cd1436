"""Find the complete transactions: by distinct rows, and by how far each partition was read.

A transaction is complete when its END was read **and** every ingested collection has at least the
distinct rows that END counts **and** every partition was read past it. Past it means: up to the
high watermark taken after END was read, or to a row of a later transaction (``cut.read_past``). The
third condition is needed because a count may be too low (before Debezium 3.7.0, after a kill of the
connector in mid-transaction). Each incarnation of the connector writes a partition in commit order,
so a later transaction's row proves that no row of this one is still to come there. So a backlog can
be read in windows, instead of up to today's watermarks every time.

If BEGIN repeats, the count is that of the last incarnation alone. So some incarnation must have it
*exactly*: surplus rows of an earlier incarnation must not count for rows that are still to come.

A row without a key counts by its place in the log, which is the same when the row comes again. Rows
of one COPY share a place. One incarnation numbers them apart, so a place has at least as many rows
as one incarnation sent of it (``shortfalls_by_incarnation``, used only if the count of places was
not enough).

Before Debezium 3.3 a row does not name its incarnation. In log order ``total_order`` grows within
one incarnation, and an incarnation that resumes in mid-transaction starts at 1 again: the rows
behind the last step back belong to the last incarnation. If several incarnations sent a row, its
lowest number counts: the last incarnation began at the same row as those before it, or later. (Each
resumes from a committed offset, and committed offsets never go back.)

Rejected: to trust the count of ``total_order`` values; see ``mariadb-kill``. Also rejected: to
count rows without a key by run and ``total_order``. There, repeated rows counted for rows that
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
    """Give each transactional change its transaction's ``end_offset`` (NULL: no END was read yet).

    A key may be used again (PostgreSQL's xid wraps around). The row then belongs to the first END
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
        is_counted: Over column ``data_collection``: whether this pipeline reads the collection, so
            that its rows must be there; the counts of other collections are subtracted.

    Returns:
        ``end_offset``, ``collection``, ``expected``, ``found``, ``reason``; a transaction may have
        several rows. Where rows have ``INSIDE``, the result includes transactions whose rows lie in
        a way that is impossible without compression (``compressed_detection.SHARED_PLACE``).
        ``TOO_FEW_PLACES`` is not certain.
    """
    rows = rows.withColumn("identity", F.when(_keyless(), _place()).otherwise(F.col("identity")))
    if INSIDE in rows.columns:
        counts = _counts(boundaries, is_counted, "begins")
        return compressed_detection.judged(
            rows, counts.withColumnRenamed("data_collection", "collection"), TOO_FEW_ROWS
        )
    row_columns = rows.where(F.col("end_offset").isNotNull()).select(
        "end_offset",
        "collection",
        "identity",
        F.lit(None).cast("bigint").alias("expected"),
        _keyless().alias("keyless"),
    )
    end_counts = _counts(boundaries, is_counted).select(
        "end_offset",
        F.col("data_collection").alias("collection"),
        F.lit(None).cast("bigint").alias("identity"),
        F.col("event_count").alias("expected"),
        F.lit(False).alias("keyless"),
    )
    # In one frame, by transaction: one exchange is enough for the distinct count, its sum and the
    # match. A join of two aggregations takes four (a third of the time, measured).
    return (
        row_columns.unionAll(end_counts)
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
    """Count as ``shortfalls`` does, with as many rows per place as one incarnation sent of it.

    Several incarnations sent a transaction if its rows name no incarnation and one number stands
    for two of its places: each place then counts as one row.
    """
    with_end = rows.where(F.col("end_offset").isNotNull())
    of_number = Window.partitionBy("end_offset", "nth")
    is_unnamed = F.col("incarnation").isNull()
    is_two_places = is_unnamed & (F.min("place").over(of_number) != F.max("place").over(of_number))
    of_transaction = Window.partitionBy("end_offset")
    with_place = (
        with_end.withColumn("place", F.when(_keyless(), _place()).otherwise(F.col("identity")))
        .withColumn("twice", F.coalesce(is_two_places, F.lit(False)))
        .withColumn("mixed", F.max("twice").over(of_transaction))
    )
    one_row = F.when(F.col("mixed") & is_unnamed, F.col("place")).otherwise(F.col("identity"))
    by_incarnation = with_place.groupBy("end_offset", "collection", "place", "incarnation").agg(
        F.count_distinct(one_row).alias("times")
    )
    by_collection = (
        by_incarnation.groupBy("end_offset", "collection", "place")
        .agg(F.max("times").alias("times"))
        .groupBy("end_offset", "collection")
        .agg(F.sum("times").alias("found"))
    )
    end_counts = _counts(boundaries, is_counted).select(
        "end_offset",
        F.col("data_collection").alias("collection"),
        F.col("event_count").alias("expected"),
    )
    return (
        end_counts.join(by_collection, ["end_offset", "collection"], "left")
        .withColumn("found", F.coalesce("found", F.lit(0).cast("bigint")))
        .where(F.col("found") < F.col("expected"))
        .withColumn("reason", F.lit(TOO_FEW_ROWS))
        .select(*_COLUMNS)
    )


def sent_once(changes: DataFrame, boundaries: DataFrame) -> DataFrame:
    """Identify keyless rows that several unnamed incarnations sent by their place.

    Each incarnation gave a row its own number, so a row that came again would be another row. Equal
    rows of a COPY also share a place. If only an earlier incarnation sent some of them, one row is
    left, and nothing says how many there were.

    Args:
        changes: ``CHANGE`` with ``end_offset``.
        boundaries: ``BOUNDARY``. Only worth a job if some boundary has ``begins > 1``.
    """
    begun_twice = boundaries.where((F.col("begins") > 1) & ~F.col("implied")).select("end_offset")
    is_unnamed = F.col("incarnation").isNull()
    place = F.when(_keyless(), _place()).otherwise(F.col("identity"))
    several = (
        transactional(changes)
        .where(is_unnamed)
        .join(F.broadcast(begun_twice), "end_offset", "left_semi")
        .groupBy("end_offset", "nth")
        .agg(F.min(place).alias("_first"), F.max(place).alias("_last"))
        .where(F.col("_first") != F.col("_last"))
        .select("end_offset", F.lit(True).alias("_several"))
        .distinct()
    )
    by_place = F.col("_several").isNotNull() & is_unnamed & _keyless()
    return (
        changes.join(F.broadcast(several), "end_offset", "left")
        .withColumn("identity", F.when(by_place, _place()).otherwise(F.col("identity")))
        .select(*changes.columns)
    )


def _keyless() -> Column:
    return F.col("key").isNull() & (F.col("op") != "t")


def _place() -> Column:
    return F.xxhash64("transaction_key", "position", "collection", "op")


def interrupted(rows: DataFrame, boundaries: DataFrame, is_counted: Column) -> DataFrame:
    """Find transactions with a repeated BEGIN where no incarnation sent exactly END's rows.

    Only worth a job if some boundary has ``begins > 1``. Columns as ``shortfalls``.
    """
    begun_twice = boundaries.where((F.col("begins") > 1) & ~F.col("implied"))
    end_counts = (
        _counts(begun_twice, is_counted)
        .groupBy("end_offset")
        .agg(F.sum("event_count").alias("expected"))
    )
    repeated_rows = (
        rows.join(F.broadcast(begun_twice.select("end_offset")), "end_offset", "left_semi")
        .withColumn("data_collection", F.col("collection"))
        .where(is_counted)
    )
    named = repeated_rows.where(F.col("incarnation").isNotNull())
    unnamed = _by_number(repeated_rows.where(F.col("incarnation").isNull()))
    by_incarnation = (
        named.select(*unnamed.columns)
        .unionAll(unnamed)
        .groupBy("end_offset", "incarnation")
        .agg(F.count_distinct("identity").alias("found"), F.max("position").alias("_reached"))
        # END's count is that of an incarnation that sent the last row. An incarnation that was
        # killed half-way may by chance have as many rows.
        .withColumn("_furthest", F.max("_reached").over(Window.partitionBy("end_offset")))
        .where(F.col("_reached") == F.col("_furthest"))
    )
    whole = by_incarnation.join(end_counts, "end_offset").where(F.col("found") == F.col("expected"))
    return (
        end_counts.join(whole.select("end_offset"), "end_offset", "left_anti")
        .where(F.col("expected") > 0)
        .withColumn("collection", F.lit(None).cast("string"))
        .withColumn("found", F.lit(None).cast("bigint"))
        .withColumn("reason", F.lit(NO_WHOLE_INCARNATION))
        .select(*_COLUMNS)
    )


def unresumed(
    rows: DataFrame, boundaries: DataFrame, is_counted: Column, begins: DataFrame
) -> DataFrame:
    """Find transactions with a repeated BEGIN of which no row was written after the last BEGIN.

    The rows of the incarnation that wrote END are under way then. One that was killed may by chance
    have as many rows as END counts. Rejected: to compare incarnations; BEGIN and END name none.

    Args:
        rows: Counted rows of the window with ``end_offset`` and ``written_at``, their Kafka
            timestamp.
        boundaries: ``BOUNDARY``.
        is_counted: Condition over ``data_collection``.
        begins: ``transaction_key``, ``offset`` and ``timestamp`` (Kafka's) of each BEGIN.

    Returns:
        Columns as ``shortfalls``.
    """
    begun_twice = boundaries.where((F.col("begins") > 1) & ~F.col("implied"))
    of_transaction = begins.join(
        F.broadcast(begun_twice.select("transaction_key", "end_offset")), "transaction_key"
    ).where(F.col("offset") < F.col("end_offset"))
    last_begin = of_transaction.groupBy("end_offset").agg(
        F.max_by("timestamp", "offset").alias("begun_at")
    )
    written = rows.groupBy("end_offset").agg(F.max("written_at").alias("written_at"))
    expected = _counts(begun_twice, is_counted).groupBy("end_offset")
    # No connector starts anew within a second; the clocks of two brokers may differ by less.
    is_late = F.col("written_at") >= F.col("begun_at") - F.expr("INTERVAL 1 SECOND")
    return (
        expected.agg(F.sum("event_count").alias("expected"))
        .where(F.col("expected") > 0)
        .join(last_begin, "end_offset")
        .join(written, "end_offset", "left")
        .where(~F.coalesce(is_late, F.lit(False)))
        .withColumn("collection", F.lit(None).cast("string"))
        .withColumn("found", F.lit(None).cast("bigint"))
        .withColumn("reason", F.lit(NO_WHOLE_INCARNATION))
        .select(*_COLUMNS)
    )


def _by_number(rows: DataFrame) -> DataFrame:
    """Number the incarnations of rows that name none; a repeated row is the last one's.

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
    """Return END's counts: ``end_offset``, ``data_collection``, ``event_count``."""
    counts = boundaries.select("end_offset", *more, F.explode("collections").alias("_c"))
    return counts.select("end_offset", *more, "_c.*").where(is_counted)


_COLUMNS = ("end_offset", "collection", "expected", "found", "reason")
