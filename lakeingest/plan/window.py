"""Records of a window to changes, boundaries and batches: stages one to four, joined.

A window is what one reading of the log brings; a batch is a run of whole transactions in it. The
window is decoded once however many batches are cut from it.
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
    # Whether a BEGIN is of a later transaction the numbers of two tags do not tell.
    implied_end = family.implied_end and not _in_file_order(spec)
    found = boundaries(metadata, family.transaction_key(id_), end_position, implied_end)
    if family.end_collection is not None:
        found = found.withColumn("collections", _renamed(family.end_collection))
    domain = family.domains.domain(id_) if family.domains else F.lit("")
    return found.withColumn("domain", domain)


def _renamed(named: Callable[[Column], Column]) -> Column:
    return F.transform(
        "collections",
        lambda item: F.struct(
            named(item["data_collection"]).alias("data_collection"), item["event_count"]
        ),
    )


def all_placed_by_rows(spec: PipelineSpec) -> bool:
    """Tell whether the place of every END is told by the rows of its transaction."""
    return FAMILIES[spec.connector].end_position is None


def placed_by_rows(spec: PipelineSpec) -> bool:
    """Tell whether the place of some END is told by the rows of its transaction (``placed``)."""
    return all_placed_by_rows(spec) or bool(_in_file_order(spec))


def _in_file_order(spec: PipelineSpec) -> list[int]:
    return [epoch.number for epoch in spec.epochs if epoch.in_file_order]


def placed(ends: DataFrame, window: DataFrame, spec: PipelineSpec, frontier: str) -> DataFrame:
    """Give ENDs their place by the rows of their transactions, where ids do not tell.

    The rows of a transaction share the leading component, its commit; in file order, it is that of
    its last row. An END lies above all with it; those that share it are kept apart by their offset,
    which ends the position. One without rows is where the END before it is: it has none that count,
    or it waits for them.

    Args:
        ends: ``window_boundaries``; open ones have no place.
        window: ``CHANGE``, all that the transactions have so far.
        spec: Pipeline settings.
        frontier: Position of the last END that was released; empty: none was.
    """
    reached = (
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
    mine, commit = _placed_here(spec, commit)
    place = F.concat(commit, F.lit(_ABOVE_ROWS), component(F.col("end_offset")))
    readable = (F.col("end_position") != "") & ~F.col("open")
    return (
        ends.join(reached, "transaction_key", "left")
        .withColumn(
            "end_position",
            F.when(readable & mine, place).otherwise(F.col("end_position")),
        )
        .select(*ends.columns)
    )


def _placed_here(spec: PipelineSpec, commit: Column) -> tuple[Column, Column]:
    """Return which ENDs stand where their rows do, and the commit of those.

    In file order one without rows is not below its epoch, though the END before it may be.
    """
    if all_placed_by_rows(spec):
        return F.lit(True), commit
    mine, place = F.lit(False), commit
    for number in _in_file_order(spec):
        first = after(number, 0)
        inside = F.startswith(F.col("end_position"), F.lit(first[: EPOCH_WIDTH + 1]))
        mine = mine | inside
        place = F.when(inside, F.greatest(commit, F.lit(first))).otherwise(place)
    return mine, place


def over(boundaries: DataFrame) -> DataFrame:
    """Keep the transactions that are over."""
    return boundaries.where(~F.col("open"))


def told_apart(end_position: str) -> str:
    """Return what of an END's position is the same when END comes again."""
    return end_position[:-COMPONENT_WIDTH] if _is_placed(end_position) else end_position


def released_below(frontier: str) -> str:
    """Return the position below which every row's transaction was released.

    Args:
        frontier: Position of the last END that was released; where rows told its place, another
            transaction with the same commit may follow.
    """
    return frontier[:_COMMIT_WIDTH] if _is_placed(frontier) else frontier


def _is_placed(end_position: str) -> bool:
    return end_position.startswith(_ABOVE_ROWS, _COMMIT_WIDTH)


_COMMIT_WIDTH = EPOCH_WIDTH + 1 + COMPONENT_WIDTH
"""Of a position, epoch, rank and leading component."""

_PLACE_WIDTH = EPOCH_WIDTH + 1 + 2 * COMPONENT_WIDTH
"""Of a snapshot row's position, epoch, rank and the place of the whole snapshot."""

_SNAPSHOT_RANK = "0"

_UNPLACED = "?"
_ABOVE_ROWS = "G"
"""Above every digit."""


def is_counted(selected: Column | None, uncounted: Sequence[str]) -> Column:
    """Condition over ``data_collection``: its rows are read here, so END's count must be met.

    PostgreSQL counts logical messages under names like ``…MessageId@50a5e486``: not rows.

    Args:
        selected: Whether the configuration selects the collection's topic; null: all are.
        uncounted: Collections whose rows are known to be dropped on the way.
    """
    name = F.col("data_collection")
    message = name.rlike(r"^io\.debezium\..*@[0-9a-f]+$")
    counted = ~message & ~name.isin("", *uncounted)
    return counted if selected is None else counted & selected


def snapshot_place() -> Column:
    """Return the place in the log that the rows of one snapshot share, as a position begins.

    Null where its rows have places of their own (user-named ordering columns, YugabyteDB's gRPC).
    """
    position = F.col("position")
    shared = F.substring(position, EPOCH_WIDTH + 1, 1) == _SNAPSHOT_RANK
    return F.when(shared, F.substring(position, 1, _PLACE_WIDTH))


def without_attempts(window: DataFrame, attempts: Iterable[tuple[str | None, str]]) -> DataFrame:
    """Make the rows of these attempts at a snapshot ``Kind.SUPERSEDED``.

    Args:
        window: ``CHANGE``.
        attempts: ``incarnation`` and ``snapshot_place`` (empty: null) of each.
    """
    theirs = F.lit(False)
    place = F.coalesce(snapshot_place(), F.lit(""))
    for run, shared in attempts:
        theirs = theirs | (F.col("incarnation").eqNullSafe(F.lit(run)) & (place == F.lit(shared)))
    dropped = (F.col("kind") == Kind.SNAPSHOT) & theirs
    return window.withColumn(
        "kind", F.when(dropped, F.lit(Kind.SUPERSEDED)).otherwise(F.col("kind"))
    )


def assigned(window: DataFrame, ends: DataFrame) -> DataFrame:
    """Give each change its transaction's ``end_offset``, unless it has it already."""
    if "end_offset" in window.columns:
        return window
    return completeness.assigned(window, ends)


def shortfalls(window: DataFrame, ends: DataFrame, counted: Column) -> DataFrame:
    """Find the transactions of the window that lack rows; see ``completeness``."""
    rows = completeness.transactional(assigned(window, ends))
    return completeness.shortfalls(rows, ends, counted)


def shortfalls_by_incarnation(window: DataFrame, ends: DataFrame, counted: Column) -> DataFrame:
    """Count rows without a key, which share places of the log, by incarnation."""
    rows = completeness.transactional(assigned(window, ends))
    return completeness.shortfalls_by_incarnation(rows, ends, counted)


def interrupted(window: DataFrame, ends: DataFrame, counted: Column) -> DataFrame:
    """Find transactions with a repeated BEGIN that no incarnation sent whole."""
    rows = completeness.transactional(assigned(window, ends))
    return completeness.interrupted(rows, ends, counted)


def sent_once(window: DataFrame, ends: DataFrame) -> DataFrame:
    """Let what unnamed incarnations of the connector sent again be one row; see there."""
    return completeness.sent_once(assigned(window, ends), ends)


def in_batches(
    window: DataFrame,
    ends: DataFrame,
    cuts: Sequence[Cut],
    frontier_position: str,
    *,
    snapshot: bool,
) -> DataFrame:
    """Give each change of the window the index of its batch (``batch``, null: stays pending).

    Rows of a transaction go with their END. Rows without one (incremental snapshots, MySQL's
    TRUNCATE) go with the first cut above their position. Rows of transactions that were released
    before have come again: they go with the first batch, where they change nothing. So do rows of
    an initial snapshot that was published before.

    Args:
        window: ``CHANGE``.
        ends: The window's boundaries.
        cuts: Its batches, in commit order.
        frontier_position: Position above everything released before.
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
        .when(_again(frontier_position), F.lit(1))
        .when(F.col("transaction_key").isNull(), by_position)
    )
    rows = assigned(window, ends)
    return rows.withColumn("batch", F.when(index <= len(cuts), index))


def _again(frontier_position: str) -> Column:
    """Condition: the row's transaction was released before."""
    return F.col("position") < F.lit(frontier_position)


def of_batch(
    window: DataFrame, cuts: Sequence[Cut], index: int, frontier_position: str, *, snapshot: bool
) -> DataFrame:
    """Keep the changes of one batch: what ``in_batches`` numbers ``index``, without numbering.

    A plain range condition; the numbering would compare every row with every cut, per table.

    Args:
        window: ``CHANGE`` with ``end_offset``.
        cuts: The window's batches, in commit order.
        index: Which batch.
        frontier_position: Position above everything released before the window.
        snapshot: Whether the initial snapshot forms batch 0.
    """
    if index == SNAPSHOT_BATCH:
        return window.where(F.col("kind") == Kind.SNAPSHOT)
    cut = cuts[index - 1]
    mine = F.col("end_offset").between(cut.first_offset, cut.last_offset)
    lower = F.lit(cuts[index - 2].position if index > 1 else frontier_position)
    position = F.col("position")
    loose = (
        F.col("transaction_key").isNull() & (position >= lower) & (position < F.lit(cut.position))
    )
    without = loose | _again(frontier_position) if index == 1 else loose
    ours = F.when(F.col("end_offset").isNotNull(), mine).otherwise(without)
    kinds = (Kind.ROW, Kind.TRUNCATE) if snapshot else (Kind.ROW, Kind.TRUNCATE, Kind.SNAPSHOT)
    # The numbers first: they turn most of the window away before a text is compared.
    return window.where(ours & F.col("kind").isin(*kinds))
