"""Prepare a batch: resolve each table's part of it before anything is written.

Preparing is a step of its own. It needs three facts of the lake: which tables exist, their columns,
and when each was truncated last. If the batch before does not change these facts in an unforeseen
way, this batch is prepared while that one is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakeingest.apply.batch.latest_per_key import LatestPerKey, latest, latest_of_snapshot
from lakeingest.apply.batch.table_part import Fold, TablePart, choose_fold
from lakeingest.apply.batch_stats import BatchStats, may_move_without_header
from lakeingest.apply.lake import LakeState
from lakeingest.apply.parallel import in_parallel
from lakeingest.apply.spark_errors import spark_errors_of
from lakeingest.apply.table.catalog import TableBook
from lakeingest.apply.window.contents import Contents
from lakeingest.apply.window.snapshot_attempts import superseded_below
from lakeingest.apply.window.window import Window
from lakeingest.commit_note import CommitNote
from lakeingest.engine.few_rows import FEW_ROWS, for_few_rows
from lakeingest.engine.local_checkpoint import local_checkpoint
from lakeingest.frame_schemas import END
from lakeingest.payload.deferred_key_order import with_moves
from lakeingest.plan.batches import SNAPSHOT_BATCH, of_batch, with_ends
from lakeingest.plan.table import keys_with_deferred_order, tables_with_deferred_order
from lakeingest.position.epochs import snapshot_floor
from lakeingest.sink.contract import TableState
from lakeingest.source.contract import TopicPartition
from lakeingest.transaction.cut import End


@dataclass(frozen=True)
class PreparedBatch:
    """A batch that is ready to be written.

    Attributes:
        index: Index of the batch in the window.
        batch_stats: Summaries of all its changes.
        parts: One part per table, the largest first: with few workers a long one must not start
            last.
        latest: Latest change per key of the tables that fold undecoded; None: no table does.
        ends: Its transactions, if each becomes a version of its own.
    """

    index: int
    batch_stats: tuple[BatchStats, ...]
    parts: tuple[TablePart, ...]
    latest: LatestPerKey | None
    ends: tuple[End, ...] = ()

    @property
    def must_be_cut(self) -> bool:
        """Whether its transactions are to be versions, and some table cannot have them at once.

        Then the batch is not to be written.
        """
        return len(self.ends) > 1 and bool(self.cut_out_at)

    @property
    def cut_out_at(self) -> tuple[str, ...]:
        """Positions of rows whose transactions need a commit of their own (``cut_out``)."""
        positions = (part.cut_out_at for part in self.parts)
        return tuple(position for position in positions if position is not None)

    @property
    def rows(self) -> int:
        """Number of its changes."""
        return sum(stats.rows for stats in self.batch_stats)

    @property
    def foreseen(self) -> bool:
        """Whether the columns of all its tables after the batch are known in advance."""
        return all(part.foreseen for part in self.parts)

    def expected(self, state: LakeState) -> LakeState:
        """Return ``state`` after a foreseen batch, as far as ``prepare`` needs it.

        The tables, which of them are published, their keys and floors are right; versions and
        progress are not.
        """
        tables = dict(state.tables)
        for part in self.parts:
            collection = part.table.collection
            before = tables.get(collection, _CREATED)
            table = part.table
            note = replace(
                before.note,
                floor=part.floor,
                key=table.key,
                partition=table.partition,
                schema=table.source or before.note.schema,
                high=max(before.note.high, part.high),
            )
            tables[collection] = replace(before, note=note)
        shown = {part.table.collection: 0 for part in self.parts} | dict(state.head.tables)
        return replace(state, tables=tables, head=replace(state.head, tables=shown))


_MOST_ROWS, _MOST_BYTES = 20_000, 16 * 1024 * 1024
"""Most changes of a table, and bytes of their rows, whose transactions become versions at once."""

_CREATED = TableState(
    0,
    CommitNote(
        pipeline="", collection="", run="", token=0, batch=0, end_offset=-1, end_position=""
    ),
)


def prepare(window: Window, index: int, state: LakeState, book: TableBook) -> PreparedBatch:
    """Resolve columns and latest changes of batch ``index`` on top of ``state``; write nothing.

    Raises:
        ConfigError: A table's columns or key cannot be resolved.
        DataError: A value cannot be read.
    """
    own_stats = tuple(stats for stats in window.batch_stats if stats.batch == index)
    if index == SNAPSHOT_BATCH and state.head.frontier.epoch:
        own_stats += _truncates_of_replaced(state, book)
    elif not state.head.frontier.streaming and (index == SNAPSHOT_BATCH or not window.whole):
        own_stats += _truncates_of_unpublished(window.contents, index, state, book)
    by_table: dict[str, list[BatchStats]] = {}
    for stats in own_stats:
        by_table.setdefault(stats.collection, []).append(stats)
    # Leave out a table that has a truncate but no row, here or in the lake: nothing to sweep away.
    collections = [
        name
        for name, table_stats in by_table.items()
        if name in state.tables or any(stats.rows for stats in table_stats)
    ]
    collections.sort(key=lambda name: -sum(stats.rows for stats in by_table[name]))
    ends = state.ends_to_divide(window.ends_of(index))
    changes = _changes(window, index, own_stats, ends, state.applied)
    own_stats_of = {name: by_table[name] for name in collections}
    exchanging = _with_exchanged_keys(changes, own_stats_of) if window.whole else frozenset()

    def part(collection: str) -> TablePart:
        with spark_errors_of(collection):
            exchanges, own = collection in exchanging, by_table[collection]
            made = _part(changes, collection, own, state, book, exchanges=exchanges)
            return _with_cut_out(made, state, book) if ends else made

    parts = tuple(in_parallel(part, collections))
    book.refuse_guesses()
    batch = PreparedBatch(index, own_stats, parts, None, ends)
    if batch.must_be_cut:
        return batch
    undecoded = [part.table.collection for part in parts if part.fold is Fold.UNDECODED]
    counted = [
        part.table.collection
        for part in parts
        if part.counts_undecoded and part.fold is not Fold.UNDECODED
    ]
    with spark_errors_of(", ".join([*undecoded, *counted])):
        find_latest = latest_of_snapshot if index == SNAPSHOT_BATCH else latest
        latest_changes = find_latest(changes, undecoded, counted)
    return replace(batch, latest=latest_changes)


def _changes(
    window: Window,
    index: int,
    own_stats: Sequence[BatchStats],
    ends: Sequence[End],
    applied: Mapping[str, int],
) -> DataFrame:
    """Return the changes of a batch, from which each table's part is selected.

    If they are a few of the window's, they are selected once and not by each table.
    """
    changes = of_batch(
        window.changes, window.cuts, index, window.frontier_position, snapshot=window.snapshot
    )
    if ends:
        changes = with_ends(changes, ends, applied)
    rows, size = sum(stats.rows for stats in own_stats), sum(stats.size for stats in own_stats)
    records = window.ranges.records
    few = for_few_rows(changes, rows, size, among=records)
    # ``for_few_rows`` has stored what it found among many.
    has_others = len(window.cuts) + window.snapshot > 1 and records <= FEW_ROWS
    return local_checkpoint(few) if few is not changes and has_others else few


def _truncates_of_replaced(state: LakeState, book: TableBook) -> tuple[BatchStats, ...]:
    """Truncate every table below the new snapshot that replaces it; rows that it lacks are gone.

    This includes tables that the snapshot does not name: an empty table has no row in a snapshot.
    """
    floor = snapshot_floor(state.head.frontier.epoch)
    nowhere = TopicPartition("", 0)
    return tuple(
        BatchStats(SNAPSHOT_BATCH, nowhere, name, 0, 0, "", "", floor)
        for name in state.tables
        if book.is_read(name)
    )


def _truncates_of_unpublished(
    contents: Contents, index: int, state: LakeState, book: TableBook
) -> tuple[BatchStats, ...]:
    """Truncate the rows that a killed run wrote of a snapshot attempt, if a later one replaced it.

    Such a table is in no publication. Where an epoch begins, every table is truncated in any case.
    """
    nowhere = TopicPartition("", 0)
    unpublished = (
        (name, table.note)
        for name, table in state.tables.items()
        if name not in state.head.tables and not table.note.adopted_at and book.is_read(name)
    )
    floors = {name: superseded_below(contents, name, note.high) for name, note in unpublished}
    return tuple(
        BatchStats(index, nowhere, name, 0, 0, "", "", floor)
        for name, floor in floors.items()
        if floor
    )


def _with_exchanged_keys(
    changes: DataFrame, stats_of: Mapping[str, Sequence[BatchStats]]
) -> frozenset[str]:
    """Return the tables whose rows exchange record keys, of those that could fold undecoded."""
    candidates = [
        name
        for name, table_stats in stats_of.items()
        if any(stats.relocated for stats in table_stats)
        and not any(stats.masked for stats in table_stats)
    ]
    if not candidates:
        return frozenset()
    with spark_errors_of(", ".join(candidates)):
        rows = changes.where(F.col("collection").isin(candidates))
        return frozenset(row["collection"] for row in tables_with_deferred_order(rows).collect())


def _part(
    changes: DataFrame,
    collection: str,
    batch_stats: Sequence[BatchStats],
    state: LakeState,
    book: TableBook,
    *,
    exchanges: bool,
) -> TablePart:
    previous = state.tables.get(collection)
    own_changes = changes.where(F.col("collection") == collection)
    table = book.spec(collection, batch_stats, own_changes, previous)
    is_ambiguous = table.has_ambiguous_nulls(book.encodings(collection))
    if book.whole and table.keyless is None and may_move_without_header(batch_stats):
        with_key_changes = with_moves(own_changes)
        if is_ambiguous or not keys_with_deferred_order(with_key_changes).isEmpty():
            own_changes, exchanges = with_key_changes, True
            batch_stats = [stats.any_relocated() for stats in batch_stats]
    if is_ambiguous:
        batch_stats = [stats.all_masked() for stats in batch_stats]
    if table.key_in_value and table.keyless is None:
        batch_stats = [stats.any_moved() for stats in batch_stats]
    floor = max(
        [stats.floor for stats in batch_stats] + ([previous.note.floor] if previous else [])
    )
    fold = choose_fold(batch_stats, table, floor, exchanges=exchanges)
    foreseen = book.foreseen(table, previous)
    return TablePart(table, tuple(batch_stats), own_changes, floor, fold, foreseen)


def _with_cut_out(part: TablePart, state: LakeState, book: TableBook) -> TablePart:
    """Return a part with ``cut_out_at``; and without ``END``, if it needs a commit of its own."""
    position = _cut_out_at(part, state, book)
    if position is None:
        return part
    return replace(part, cut_out_at=position, changes=part.changes.drop(END))


def _cut_out_at(part: TablePart, state: LakeState, book: TableBook) -> str | None:
    """Return where a transaction is that needs a commit of its own; see ``TablePart``.

    A truncate sweeps rows away that no payload names, a new schema is of the whole table, and how
    rows without a key cancel each other depends on the table as it is between two transactions. A
    table with partitions, and some others, cannot hide rows. Places of rows come to the driver. A
    table that no publication shows, of which it may hold all rows already, gets a commit to show.
    """
    own_stats, table = part.batch_stats, part.table
    is_new = table.collection not in state.tables.keys() & state.head.tables.keys()
    positions = [stats.floor for stats in own_stats if stats.floor]
    has_key = table.keyless is None
    if is_new or table.partition or not (has_key and book.divides(table.collection)):
        positions += [stats.low for stats in own_stats if stats.low]
    if positions:
        return min(positions)
    rows, size = (sum(getattr(stats, name) for stats in own_stats) for name in ("rows", "size"))
    return None if part.foreseen and rows <= _MOST_ROWS and size <= _MOST_BYTES else ""
