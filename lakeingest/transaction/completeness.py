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
as one incarnation sent of it (``incomplete_by_incarnation``, used only if the count of places was
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

from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lakeingest.engine.few_rows import to_join
from lakeingest.engine.known_columns import Addition, Filter, Selection, Steps, made_once
from lakeingest.frame_schemas import INSIDE, ROW_PLACE, Kind
from lakeingest.transaction import compressed_detection

TOO_FEW_ROWS = "fewer rows than END counts"
TOO_FEW_PLACES = "fewer places than END counts rows, of which some have no key"
NO_WHOLE_INCARNATION = "BEGIN repeated and no incarnation of the connector sent all rows"


def transactional(changes: DataFrame) -> DataFrame:
    """Keep the changes that belong to a source transaction."""
    return changes.where(_of_transaction())


def _of_transaction() -> Column:
    return F.col("kind").isin(Kind.ROW, Kind.TRUNCATE) & F.col("transaction_key").isNotNull()


def with_end_offset(changes: DataFrame, boundaries: DataFrame) -> DataFrame:
    """Give each transactional change its transaction's ``end_offset`` (NULL: no END was read yet).

    A key may be used again (an xid wraps around): its row belongs to the first END above. Only a
    TRUNCATE belongs to an implied END: ENDs count other rows. Changes with the column stay so.
    """
    if "end_offset" in changes.columns:
        return changes
    lookup = _end_lookup(tuple(changes.columns))
    spans = to_join(lookup.spans.of(boundaries), changes)
    return lookup.columns.of(changes.join(spans, lookup.condition, "left"))


class _EndLookup(NamedTuple):
    """How changes find their transaction's END: what to join, on which condition, and the result.

    Attributes:
        spans: Per END, the positions from the END before it with the same key up to its own.
        condition: Whether a change is of a span.
        columns: The columns of the result.
    """

    spans: Selection
    condition: Column
    columns: Selection


@made_once
def _end_lookup(columns: tuple[str, ...]) -> _EndLookup:
    by_key = Window.partitionBy("transaction_key").orderBy("end_position")
    spans = Selection(
        F.col("transaction_key").alias("_key_of_end"),
        F.col("end_position").alias("_above"),
        F.col("end_offset").alias("_end_offset"),
        F.col("implied").alias("_implied"),
        F.lag("end_position", 1, "").over(by_key).alias("_lower"),
    )
    same = F.col("transaction_key") == F.col("_key_of_end")
    within = (F.col("position") >= F.col("_lower")) & (F.col("position") < F.col("_above"))
    may_belong = ~F.col("_implied") | (F.col("kind") == Kind.TRUNCATE)
    with_end = Selection(*columns, F.col("_end_offset").alias("end_offset"))
    return _EndLookup(spans, same & within & may_belong, with_end)


def incomplete_transactions(
    changes: DataFrame, boundaries: DataFrame, is_counted: Column
) -> DataFrame:
    """Find the transactions that have fewer rows than END counts.

    Args:
        changes: ``CHANGE``.
        boundaries: ``BOUNDARY``.
        is_counted: Over column ``data_collection``: whether this pipeline reads the collection, so
            that its rows must be there; the counts of other collections are subtracted.

    Returns:
        ``end_offset``, ``collection``, ``expected``, ``found``, ``reason``; a transaction may have
        several rows. Where changes have ``INSIDE``, the result includes transactions whose rows lie
        in a way that is impossible without compression (``compressed_detection.SHARED_PLACE``).
        ``TOO_FEW_PLACES`` is not certain.
    """
    steps = _count_steps(is_counted, may_be_compressed=INSIDE in changes.columns)
    rows = steps.rows.of(with_end_offset(changes, boundaries))
    counts = steps.counts.of(boundaries)
    # In one frame, by transaction: one exchange is enough for the distinct count, its sum and the
    # match. A join of two aggregations takes four (a third of the time, measured).
    both = rows.unionByName(counts, allowMissingColumns=True).repartition("end_offset")
    by_row = steps.of_row.of_groups(both, steps.row)
    by_collection = steps.of_collection.of_groups(by_row, steps.collection)
    return steps.result.of(by_collection)


class _CountSteps(NamedTuple):
    """The steps of ``incomplete_transactions``, in their order."""

    rows: Steps
    counts: Steps
    row: Selection
    of_row: Selection
    collection: Selection
    of_collection: Selection
    result: Steps


@made_once
def _count_steps(is_counted: Column, *, may_be_compressed: bool) -> _CountSteps:
    row = [_row_place().alias("identity"), _keyless().alias("keyless")]
    of_row, of_collection = _of_end(), [F.count("identity").alias("found"), *_of_end()]
    is_incomplete = F.col("found") < F.col("expected")
    if may_be_compressed:
        row += compressed_detection.of_change()
        of_row += compressed_detection.of_row()
        of_collection += compressed_detection.of_collection()
        is_compressed = compressed_detection.is_compressed(is_incomplete)
        reason = F.when(is_compressed, compressed_detection.SHARED_PLACE).when(
            is_incomplete, TOO_FEW_ROWS
        )
    else:
        too_few = F.when(F.col("keyless"), TOO_FEW_PLACES).otherwise(TOO_FEW_ROWS)
        reason = F.when(is_incomplete, too_few)
    return _CountSteps(
        rows=Steps(_of_ended(), Selection("end_offset", "collection", *row)),
        counts=_count_columns(is_counted),
        row=Selection("end_offset", "collection", "identity"),
        of_row=Selection(*of_row),
        collection=Selection("end_offset", "collection"),
        of_collection=Selection(*of_collection),
        result=Steps(
            Addition({"reason": reason}), Filter(F.col("reason").isNotNull()), Selection(*_COLUMNS)
        ),
    )


def _of_end() -> list[Column]:
    """Aggregate what rows and counts have of their END."""
    return [
        F.sum("expected").alias("expected"),
        F.max("begins").alias("begins"),
        F.max("keyless").alias("keyless"),
    ]


def counts(boundaries: DataFrame, is_counted: Column) -> DataFrame:
    """Return END's counts: ``end_offset``, ``begins``, ``collection``, ``expected``.

    Arguments as ``incomplete_transactions``.
    """
    return _count_columns(is_counted).of(boundaries)


def incomplete_by_incarnation(
    changes: DataFrame, boundaries: DataFrame, is_counted: Column
) -> DataFrame:
    """Count as ``incomplete_transactions``, with as many rows per place as one incarnation sent.

    Several incarnations sent a transaction if its rows name no incarnation and one number stands
    for two of its places: each place then counts as one row.
    """
    of_number = Window.partitionBy("end_offset", "nth")
    is_unnamed = F.col("incarnation").isNull()
    is_two_places = is_unnamed & (F.min("place").over(of_number) != F.max("place").over(of_number))
    of_transaction = Window.partitionBy("end_offset")
    with_place = (
        _rows(changes, boundaries)
        .withColumn("place", _row_place())
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
    return (
        counts(boundaries, is_counted)
        .join(by_collection, ["end_offset", "collection"], "left")
        .withColumn("found", F.coalesce("found", F.lit(0).cast("bigint")))
        .where(F.col("found") < F.col("expected"))
        .withColumn("reason", F.lit(TOO_FEW_ROWS))
        .select(*_COLUMNS)
    )


def rows_by_place(changes: DataFrame, boundaries: DataFrame) -> DataFrame:
    """Identify keyless rows that several unnamed incarnations sent by their place.

    Each incarnation gave a row its own number, so a row that came again would be another row. Equal
    rows of a COPY also share a place. If only an earlier incarnation sent some of them, one row is
    left, and nothing says how many there were.

    Args:
        changes: ``CHANGE`` with ``end_offset``.
        boundaries: ``BOUNDARY``. Only worth a job if some boundary has ``begins > 1``.
    """
    is_unnamed = F.col("incarnation").isNull()
    several = (
        _resent_rows(changes.where(is_unnamed), boundaries)
        .groupBy("end_offset", "nth")
        .agg(F.min(_row_place()).alias("_first"), F.max(_row_place()).alias("_last"))
        .where(F.col("_first") != F.col("_last"))
        .select("end_offset", F.lit(True).alias("_several"))
        .distinct()
    )
    by_place = F.col("_several").isNotNull() & is_unnamed
    identity = F.when(by_place, _row_place()).otherwise(F.col("identity"))
    with_several = changes.join(F.broadcast(several), "end_offset", "left")
    return with_several.withColumn("identity", identity).select(*changes.columns)


def without_whole_incarnation(
    changes: DataFrame, boundaries: DataFrame, is_counted: Column
) -> DataFrame:
    """Find transactions with a repeated BEGIN where no incarnation sent exactly END's rows.

    Only worth a job if some boundary has ``begins > 1``. Arguments and columns as
    ``incomplete_transactions``.
    """
    rows = _where_counted(_resent_rows(changes, boundaries), is_counted)
    named = rows.where(F.col("incarnation").isNotNull())
    unnamed = _number_incarnations(rows.where(F.col("incarnation").isNull()))
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
    totals = _totals(boundaries, is_counted)
    whole = by_incarnation.join(totals, "end_offset").where(F.col("found") == F.col("expected"))
    return _reported(totals.join(whole.select("end_offset"), "end_offset", "left_anti"))


def without_row_after_begin(
    changes: DataFrame,
    boundaries: DataFrame,
    is_counted: Column,
    begins: DataFrame,
    records: DataFrame,
) -> DataFrame:
    """Find transactions with a repeated BEGIN of which no row was written after the last BEGIN.

    The rows of the incarnation that wrote END are under way then. One that was killed may by chance
    have as many rows as END counts. Rejected: to compare incarnations; BEGIN and END name none.

    Args:
        changes: ``CHANGE``.
        boundaries: ``BOUNDARY``.
        is_counted: Condition over ``data_collection``.
        begins: ``transaction_key``, ``offset`` and ``timestamp`` (Kafka's) of each BEGIN.
        records: ``RECORD``: those of the changes.

    Returns:
        Columns as ``incomplete_transactions``.
    """
    ends = _resent(boundaries).select("transaction_key", "end_offset")
    of_transaction = begins.join(F.broadcast(ends), "transaction_key").where(
        F.col("offset") < F.col("end_offset")
    )
    last_begin = of_transaction.groupBy("end_offset").agg(
        F.max_by("timestamp", "offset").alias("begun_at")
    )
    place = ["topic", "partition", "offset"]
    last_row = (
        _where_counted(_resent_rows(changes, boundaries), is_counted)
        .join(records.select(*place, "timestamp"), place)
        .groupBy("end_offset")
        .agg(F.max("timestamp").alias("written_at"))
    )
    # No connector starts anew within a second; the clocks of two brokers may differ by less.
    is_late = F.col("written_at") >= F.col("begun_at") - F.expr("INTERVAL 1 SECOND")
    return _reported(
        _totals(boundaries, is_counted)
        .join(last_begin, "end_offset")
        .join(last_row, "end_offset", "left")
        .where(~F.coalesce(is_late, F.lit(False)))
    )


def _number_incarnations(rows: DataFrame) -> DataFrame:
    """Number the incarnations of rows that name none; a repeated row is the last one's.

    Columns: ``end_offset``, ``incarnation``, ``identity``, ``position``.
    """
    identity = _row_place().alias("identity")
    once = rows.groupBy("end_offset", identity, "position").agg(F.min("nth").alias("nth"))
    in_log = Window.partitionBy("end_offset").orderBy("position", "nth")
    back = F.coalesce(F.col("nth") <= F.lag("nth").over(in_log), F.lit(False))
    return (
        once.withColumn("_back", back.cast("int"))
        .withColumn("incarnation", F.sum("_back").over(in_log).cast("string"))
        .select("end_offset", "incarnation", "identity", "position")
    )


def _rows(changes: DataFrame, boundaries: DataFrame) -> DataFrame:
    """Keep the changes of transactions whose END was read, with its ``end_offset``."""
    return _of_ended().of(with_end_offset(changes, boundaries))


@made_once
def _of_ended() -> Filter:
    return Filter(_of_transaction() & F.col("end_offset").isNotNull())


def _resent(boundaries: DataFrame) -> DataFrame:
    """Keep the transactions with a repeated BEGIN."""
    return boundaries.where((F.col("begins") > 1) & ~F.col("implied"))


def _resent_rows(changes: DataFrame, boundaries: DataFrame) -> DataFrame:
    ends = F.broadcast(_resent(boundaries).select("end_offset"))
    return _rows(changes, boundaries).join(ends, "end_offset", "left_semi")


def _where_counted(rows: DataFrame, is_counted: Column) -> DataFrame:
    return rows.withColumn("data_collection", F.col("collection")).where(is_counted)


def _keyless() -> Column:
    return F.col("key").isNull() & (F.col("op") != "t")


def _row_place() -> Column:
    """Return a row's identity; of a row without a key, its place in the log."""
    return F.when(_keyless(), F.xxhash64(*ROW_PLACE)).otherwise(F.col("identity"))


@made_once
def _count_columns(is_counted: Column) -> Steps:
    counts = ("end_offset", "begins")
    collection = F.col("data_collection").alias("collection")
    return Steps(
        Selection(*counts, F.explode("collections").alias("_c")),
        Selection(*counts, "_c.data_collection", "_c.event_count"),
        Filter(is_counted),
        Selection(*counts, collection, F.col("event_count").alias("expected")),
    )


def _totals(boundaries: DataFrame, is_counted: Column) -> DataFrame:
    """Return the number of rows of each transaction with a repeated BEGIN and with rows."""
    by_end = counts(_resent(boundaries), is_counted).groupBy("end_offset")
    return by_end.agg(F.sum("expected").alias("expected")).where(F.col("expected") > 0)


def _reported(totals: DataFrame) -> DataFrame:
    """Return transactions of ``_totals`` in the columns of ``incomplete_transactions``."""
    return totals.select(
        "end_offset",
        F.lit(None).cast("string").alias("collection"),
        "expected",
        F.lit(None).cast("bigint").alias("found"),
        F.lit(NO_WHOLE_INCARNATION).alias("reason"),
    )


_COLUMNS = ("end_offset", "collection", "expected", "found", "reason")
