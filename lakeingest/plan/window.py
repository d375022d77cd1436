"""Turn the records of a window into changes, boundaries and batches: stages one to four, joined.

A window is the result of one read of the log. A batch is a run of whole transactions in it. The
window is decoded once, however many batches are cut from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lakeingest.envelope import changes
from lakeingest.envelope.change import FAMILIES
from lakeingest.envelope.epoch import end_epoch
from lakeingest.frame_schemas import Kind
from lakeingest.plan.ordering import ordered, with_ordering_fields
from lakeingest.plan.spec import PipelineSpec
from lakeingest.position import COMPONENT_WIDTH, EPOCH_WIDTH, after, component
from lakeingest.transaction import completeness
from lakeingest.transaction.boundary import boundaries
from lakeingest.transaction.cut import Cut

SNAPSHOT_BATCH = 0
"""Index of the window's batch that holds the initial snapshot; cuts are numbered from 1."""


def window_changes(records: DataFrame, spec: PipelineSpec) -> DataFrame:
    """Decode data records to ``CHANGE``."""
    event = bool(spec.names.event)
    family = FAMILIES[spec.connector]
    source = family.source
    if spec.ordering:
        source = with_ordering_fields(source, spec.ordering)
    envelopes = spec.format.envelopes(records, event=event, source=source)
    marks, key_body = spec.format.marks(spec.encodings), spec.format.key_body(F.col("key"))
    return changes(
        envelopes,
        spec.connector,
        spec.epoch,
        marks,
        key_body,
        event=event,
        epochs=spec.epochs,
        ordered=ordered(spec.format, spec.ordering) if spec.ordering else None,
        halves=not spec.whole,
        left_out=spec.format.may_leave_out(F.col("value")) if family.cells else None,
        foreign=spec.format.foreign(F.col("value")),
    )


def window_metadata(records: DataFrame, spec: PipelineSpec) -> DataFrame:
    """Decode records of the transaction topic (``WireFormat.transaction_metadata``'s columns)."""
    return spec.format.transaction_metadata(records)


def window_boundaries(metadata: DataFrame, spec: PipelineSpec) -> DataFrame:
    """Find the transactions that are over or open: ``BOUNDARY`` plus ``domain``."""
    family = FAMILIES[spec.connector]
    id_ = F.col("id")
    if family.end_position is None:
        end_position = F.lit(_UNPLACED)
    else:
        end_position = family.end_position(end_epoch(family, spec.epoch, spec.epochs, id_), id_)
    # In file order a BEGIN implies no END: the numbers of two tags do not say which is later.
    implied_end = family.implied_end and not _in_file_order(spec)
    transactions = boundaries(metadata, family.transaction_key(id_), end_position, implied_end)
    if family.end_collection is not None:
        transactions = transactions.withColumn("collections", _with_names(family.end_collection))
    domain = family.domains.domain(id_) if family.domains else F.lit("")
    return transactions.withColumn("domain", domain)


def _with_names(rename: Callable[[Column], Column]) -> Column:
    return F.transform(
        "collections",
        lambda item: F.struct(
            rename(item["data_collection"]).alias("data_collection"), item["event_count"]
        ),
    )


def all_placed_by_rows(spec: PipelineSpec) -> bool:
    """Return whether the rows of its transaction give every END its position."""
    return FAMILIES[spec.connector].end_position is None


def placed_by_rows(spec: PipelineSpec) -> bool:
    """Return whether the rows of its transaction give some END its position (``placed``)."""
    return all_placed_by_rows(spec) or bool(_in_file_order(spec))


def _in_file_order(spec: PipelineSpec) -> list[int]:
    return [epoch.number for epoch in spec.epochs if epoch.in_file_order]


def placed(ends: DataFrame, window: DataFrame, spec: PipelineSpec, frontier: str) -> DataFrame:
    """Give ENDs their position from the rows of their transactions, where ids do not give it.

    The positions of a transaction's rows share the leading component: its commit. In file order,
    the commit is that of the last row. An END lies above all positions with its commit. The offset
    of END ends its position, so ENDs with the same commit differ. An END without rows gets the
    commit of the END before it: it has no rows that count, or it waits for them.

    Args:
        ends: As from ``window_boundaries``; open transactions have no position.
        window: ``CHANGE``: all rows of the transactions so far.
        spec: Pipeline settings.
        frontier: Position of the last END that was released; empty: none was.
    """
    last_rows = (
        completeness.transactional(window)
        .groupBy("transaction_key")
        .agg(F.max("position").alias("_reached"))
    )
    before = Window.orderBy("end_offset").rowsBetween(Window.unboundedPreceding, 0)
    lowest = frontier[:_COMMIT_WIDTH] or after(spec.epoch, 0)
    commit = F.coalesce(
        F.last(
            F.when(~F.col("open"), F.substring("_reached", 1, _COMMIT_WIDTH)), ignorenulls=True
        ).over(before),
        F.lit(lowest),
    )
    by_rows, commit = _ends_by_rows(spec, commit)
    place = F.concat(commit, F.lit(_ABOVE_ROWS), component(F.col("end_offset")))
    readable = (F.col("end_position") != "") & ~F.col("open")
    return (
        ends.join(last_rows, "transaction_key", "left")
        .withColumn(
            "end_position",
            F.when(readable & by_rows, place).otherwise(F.col("end_position")),
        )
        .select(*ends.columns)
    )


def _ends_by_rows(spec: PipelineSpec, commit: Column) -> tuple[Column, Column]:
    """Return which ENDs get their position from rows, and the commit of these ENDs.

    In file order, an END without rows is not below its epoch, though the END before it may be.
    """
    if all_placed_by_rows(spec):
        return F.lit(True), commit
    by_rows, commit_of_end = F.lit(False), commit
    for number in _in_file_order(spec):
        first = after(number, 0)
        inside = F.startswith(F.col("end_position"), F.lit(first[: EPOCH_WIDTH + 1]))
        by_rows = by_rows | inside
        commit_of_end = F.when(inside, F.greatest(commit, F.lit(first))).otherwise(commit_of_end)
    return by_rows, commit_of_end


def over(boundaries: DataFrame) -> DataFrame:
    """Keep the transactions that are over."""
    return boundaries.where(~F.col("open"))


def told_apart(end_position: str) -> str:
    """Return the part of an END's position that is the same when the END is redelivered."""
    return end_position[:-COMPONENT_WIDTH] if _is_placed(end_position) else end_position


def released_below(frontier: str) -> str:
    """Return the position below which every row's transaction was released.

    Args:
        frontier: Position of the last END that was released. If rows gave this position, another
            transaction with the same commit may follow.
    """
    return frontier[:_COMMIT_WIDTH] if _is_placed(frontier) else frontier


def _is_placed(end_position: str) -> bool:
    return end_position.startswith(_ABOVE_ROWS, _COMMIT_WIDTH)


_COMMIT_WIDTH = EPOCH_WIDTH + 1 + COMPONENT_WIDTH
"""Width of a position's epoch, rank and leading component."""

_PLACE_WIDTH = EPOCH_WIDTH + 1 + 2 * COMPONENT_WIDTH
"""Width of a snapshot row's epoch, rank and place of the whole snapshot."""

_SNAPSHOT_RANK = "0"

_UNPLACED = "?"
_ABOVE_ROWS = "G"
"""Sorts above every digit."""


def is_counted(selected: Column | None, uncounted: Sequence[str]) -> Column:
    """Return a condition over ``data_collection``: END's count of its rows must be met here.

    PostgreSQL counts logical messages under names like ``…MessageId@50a5e486``: not rows.

    Args:
        selected: Whether the configuration selects the collection's topic; None: it selects all.
        uncounted: Collections whose rows a transform drops after Debezium counted them.
    """
    name = F.col("data_collection")
    message = name.rlike(r"^io\.debezium\..*@[0-9a-f]+$")
    counted = ~message & ~name.isin("", *uncounted)
    return counted if selected is None else counted & selected


def snapshot_place() -> Column:
    """Return the place in the log that the rows of one snapshot share: a prefix of a position.

    NULL where each row has its own place (user-named ordering columns, YugabyteDB's gRPC).
    """
    position = F.col("position")
    shared = F.substring(position, EPOCH_WIDTH + 1, 1) == _SNAPSHOT_RANK
    return F.when(shared, F.substring(position, 1, _PLACE_WIDTH))


def without_attempts(window: DataFrame, attempts: Iterable[tuple[str | None, str]]) -> DataFrame:
    """Mark the rows of these snapshot attempts as ``Kind.SUPERSEDED``.

    Args:
        window: ``CHANGE``.
        attempts: ``incarnation`` and ``snapshot_place`` (empty: NULL) of each attempt.
    """
    of_attempts = F.lit(False)
    place = F.coalesce(snapshot_place(), F.lit(""))
    for run, snapshot in attempts:
        of_attempts = of_attempts | (
            F.col("incarnation").eqNullSafe(F.lit(run)) & (place == F.lit(snapshot))
        )
    dropped = (F.col("kind") == Kind.SNAPSHOT) & of_attempts
    return window.withColumn(
        "kind", F.when(dropped, F.lit(Kind.SUPERSEDED)).otherwise(F.col("kind"))
    )


def assigned(window: DataFrame, ends: DataFrame) -> DataFrame:
    """Give each change its transaction's ``end_offset``, unless the window has that column."""
    if "end_offset" in window.columns:
        return window
    return completeness.assigned(window, ends)


def shortfalls(window: DataFrame, ends: DataFrame, counted: Column) -> DataFrame:
    """Find the incomplete transactions of the window: rows are missing; see ``completeness``."""
    rows = completeness.transactional(assigned(window, ends))
    return completeness.shortfalls(rows, ends, counted)


def shortfalls_by_incarnation(window: DataFrame, ends: DataFrame, counted: Column) -> DataFrame:
    """Find incomplete transactions: count rows without a key by place and incarnation."""
    rows = completeness.transactional(assigned(window, ends))
    return completeness.shortfalls_by_incarnation(rows, ends, counted)


def interrupted(window: DataFrame, ends: DataFrame, counted: Column) -> DataFrame:
    """Find transactions with a repeated BEGIN that no incarnation sent whole."""
    rows = completeness.transactional(assigned(window, ends))
    return completeness.interrupted(rows, ends, counted)


def unresumed(
    window: DataFrame,
    ends: DataFrame,
    counted: Column,
    metadata: DataFrame,
    records: DataFrame,
    spec: PipelineSpec,
) -> DataFrame:
    """Find transactions with a repeated BEGIN of which no row was written after the last one.

    Args:
        window: ``CHANGE``.
        ends: ``BOUNDARY``.
        counted: Condition over ``data_collection``.
        metadata: See ``window_metadata``.
        records: ``RECORD``, those of the window.
        spec: Pipeline settings.
    """
    key = FAMILIES[spec.connector].transaction_key(F.col("id"))
    begins = metadata.where(F.col("status") == "BEGIN").select(
        key.alias("transaction_key"), "offset", "timestamp"
    )
    place = ["topic", "partition", "offset"]
    written = records.select(*place, F.col("timestamp").alias("written_at"))
    repeated = ends.where(F.col("begins") > 1).select("end_offset")
    rows = completeness.transactional(assigned(window, ends)).join(
        F.broadcast(repeated), "end_offset", "left_semi"
    )
    counted_rows = rows.withColumn("data_collection", F.col("collection")).where(counted)
    return completeness.unresumed(counted_rows.join(written, place), ends, counted, begins)


def sent_once(window: DataFrame, ends: DataFrame) -> DataFrame:
    """Make one row of the copies that unnamed incarnations sent; see ``completeness``."""
    return completeness.sent_once(assigned(window, ends), ends)


def in_batches(
    window: DataFrame,
    ends: DataFrame,
    cuts: Sequence[Cut],
    frontier_position: str,
    *,
    snapshot: bool,
) -> DataFrame:
    """Give each change of the window the index of its batch (``batch``; NULL: it stays pending).

    Rows of a transaction go with their END. Rows without a transaction (incremental snapshots,
    MySQL's TRUNCATE) go with the first cut above their position. Rows of transactions that were
    released before are redelivered: they go with the first batch, where they change nothing. So do
    rows of an initial snapshot that was published before.

    Args:
        window: ``CHANGE``.
        ends: The window's boundaries.
        cuts: Its batches, in commit order.
        frontier_position: Position above everything that was released before.
        snapshot: Whether the initial snapshot is complete and forms batch 0.
    """
    offsets = F.array(*(F.lit(cut.last_offset) for cut in cuts)).cast("array<bigint>")
    positions = F.array(*(F.lit(cut.position) for cut in cuts)).cast("array<string>")
    by_end = 1 + F.size(F.filter(offsets, lambda last: last < F.col("end_offset")))
    by_position = 1 + F.size(F.filter(positions, lambda above: above <= F.col("position")))
    index = (
        F.when(F.lit(snapshot) & (F.col("kind") == Kind.SNAPSHOT), F.lit(SNAPSHOT_BATCH))
        .when(~F.col("kind").isin(Kind.ROW, Kind.TRUNCATE, Kind.SNAPSHOT), F.lit(None))
        .when(F.col("end_offset").isNotNull(), by_end)
        .when(_released_before(frontier_position), F.lit(1))
        .when(F.col("transaction_key").isNull(), by_position)
    )
    rows = assigned(window, ends)
    return rows.withColumn("batch", F.when(index <= len(cuts), index))


def _released_before(frontier_position: str) -> Column:
    """Return a condition: the row's transaction was released before."""
    return F.col("position") < F.lit(frontier_position)


def of_batch(
    window: DataFrame, cuts: Sequence[Cut], index: int, frontier_position: str, *, snapshot: bool
) -> DataFrame:
    """Keep the changes of one batch: those that ``in_batches`` gives ``index``.

    This is a plain range condition. ``in_batches`` compares every row with every cut, per table.

    Args:
        window: ``CHANGE`` with ``end_offset``.
        cuts: The window's batches, in commit order.
        index: Index of the batch.
        frontier_position: Position above everything that was released before the window.
        snapshot: Whether the initial snapshot forms batch 0.
    """
    if index == SNAPSHOT_BATCH:
        return window.where(F.col("kind") == Kind.SNAPSHOT)
    cut = cuts[index - 1]
    # Start behind the last END of the batch before it, not at the batch's own first END: so no END
    # lies between two batches.
    mine = F.col("end_offset") <= cut.last_offset
    if index > 1:
        mine &= F.col("end_offset") > cuts[index - 2].last_offset
    lower = F.lit(cuts[index - 2].position if index > 1 else frontier_position)
    position = F.col("position")
    loose = (
        F.col("transaction_key").isNull() & (position >= lower) & (position < F.lit(cut.position))
    )
    without = loose | _released_before(frontier_position) if index == 1 else loose
    ours = F.when(F.col("end_offset").isNotNull(), mine).otherwise(without)
    kinds = (Kind.ROW, Kind.TRUNCATE) if snapshot else (Kind.ROW, Kind.TRUNCATE, Kind.SNAPSHOT)
    # Compare the numbers first: they filter most of the window before Spark compares a text.
    return window.where(ours & F.col("kind").isin(*kinds))
