"""Turn the records of a window into changes, boundaries and batches: stages one to four, joined.

A window is the result of one read of the log. A batch is a run of whole transactions in it. The
window is decoded once, however many batches are cut from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lakeingest.connectors import CONNECTORS
from lakeingest.envelope import ChangeSpec, changes
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
    event, value = bool(spec.names.event), F.col("value")
    source = with_ordering_fields(FAMILIES[spec.connector].source, spec.ordering)
    partial_rows = CONNECTORS[spec.connector].partial_rows
    change_spec = ChangeSpec(
        spec.connector,
        epoch=spec.epoch,
        epochs=spec.epochs,
        marks=spec.format.marks(spec.encodings),
        key_body=spec.format.key_body(F.col("key")),
        may_omit=spec.format.may_omit(value) if partial_rows else None,
        is_foreign=spec.format.is_foreign(value),
        ordering=ordered(spec.format, spec.ordering) if spec.ordering else None,
        event=event,
        halves=not spec.whole,
    )
    return changes(spec.format.envelopes(records, event=event, source=source), change_spec)


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


assigned = completeness.assigned
shortfalls = completeness.shortfalls
shortfalls_by_incarnation = completeness.shortfalls_by_incarnation
sent_once = completeness.rows_by_place
interrupted = completeness.without_whole_incarnation


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
    return completeness.without_row_after_begin(window, ends, counted, begins, records)


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
    places = (F.struct(F.lit(one.last_offset), F.lit(one.position)) for one in cuts)
    cut_places = F.array(*places).cast("array<struct<last_offset:bigint,position:string>>")

    def is_behind(place: Column) -> Column:
        return _is_behind(place["last_offset"], place["position"], frontier_position)

    index = F.size(F.filter(cut_places, is_behind)) + 1
    has_batch = _is_applied(snapshot=snapshot) & _is_behind(0, "", frontier_position).isNotNull()
    number = F.when(has_batch & (index <= len(cuts)), index)
    if snapshot:
        in_snapshot = F.col("kind") == Kind.SNAPSHOT
        number = F.when(in_snapshot, F.lit(SNAPSHOT_BATCH)).otherwise(number)
    return completeness.assigned(window, ends).withColumn("batch", number)


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

    def is_behind(cut: Cut) -> Column:
        return _is_behind(cut.last_offset, cut.position, frontier_position)

    # Start behind the last END of the batch before it, not at the batch's own first END: so no END
    # lies between two batches.
    behind_others = is_behind(cuts[index - 2]) if index > 1 else F.lit(True)
    in_range = behind_others & ~is_behind(cuts[index - 1])
    return window.where(in_range & _is_applied(snapshot=snapshot))


def _is_behind(last_offset: Column | int, position: Column | str, frontier_position: str) -> Column:
    """Return whether a change lies behind a cut; NULL: its transaction has no END yet.

    A row of a transaction that was released before lies behind no cut.
    """
    position_of_cut = F.lit(position)
    return (
        F.when(F.col("end_offset").isNotNull(), F.col("end_offset") > F.lit(last_offset))
        .when(F.col("position") < F.lit(frontier_position), F.lit(False))
        .when(F.col("transaction_key").isNull(), F.col("position") >= position_of_cut)
    )


def _is_applied(*, snapshot: bool) -> Column:
    """Return whether a change belongs to a batch of transactions.

    Args:
        snapshot: Whether the rows of the initial snapshot are a batch of their own.
    """
    kinds = (Kind.ROW, Kind.TRUNCATE) if snapshot else (Kind.ROW, Kind.TRUNCATE, Kind.SNAPSHOT)
    return F.col("kind").isin(*kinds)
