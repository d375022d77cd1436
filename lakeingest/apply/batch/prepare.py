"""What a batch has for each table, settled before anything of it is written.

A step of its own because it needs of the lake no more than what tables there are, with which
columns and truncated when. Where the batch before does not change that, this one is prepared while
that one is being written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakeingest.apply.batch.changeset import folds_undecoded, rows_pass
from lakeingest.apply.batch.latest_per_key import LatestPerKey, latest
from lakeingest.apply.batch_stats import BatchStats, may_move_without_header
from lakeingest.apply.lake import LakeState
from lakeingest.apply.parallel import side_by_side
from lakeingest.apply.spark_errors import explained
from lakeingest.apply.table.catalog import TableBook
from lakeingest.apply.window.contents import Contents
from lakeingest.apply.window.snapshot_attempts import swept_below
from lakeingest.apply.window.window import Window
from lakeingest.payload.deferred_key_order import with_moves
from lakeingest.plan.spec import TableSpec
from lakeingest.plan.table import keys_passed
from lakeingest.plan.window import SNAPSHOT_BATCH, of_batch
from lakeingest.position.epochs import snapshot_floor
from lakeingest.sink.contract import CommitNote, TableState
from lakeingest.source.contract import TopicPartition


@dataclass(frozen=True)
class TablePart:
    """What a batch has for one table.

    Attributes:
        table: Its columns and key.
        batch_stats: Summaries of its changes.
        changes: Its changes in the batch.
        floor: Position of its newest truncate so far; empty: none.
        undecoded: Whether its winners are found without decoding a row.
        foreseen: Whether it is known what the table looks like afterwards.
    """

    table: TableSpec
    batch_stats: tuple[BatchStats, ...]
    changes: DataFrame
    floor: str
    undecoded: bool
    foreseen: bool


@dataclass(frozen=True)
class PreparedBatch:
    """A batch that is ready to be written.

    Attributes:
        index: Its index in the window.
        batch_stats: Summaries of all its changes.
        parts: Its tables, the largest first: with few workers the long ones must not start last.
        latest: Folded changes of the tables that fold undecoded.
    """

    index: int
    batch_stats: tuple[BatchStats, ...]
    parts: tuple[TablePart, ...]
    latest: LatestPerKey | None

    @property
    def foreseen(self) -> bool:
        """Whether it is known what all its tables look like afterwards."""
        return all(part.foreseen for part in self.parts)

    def expected(self, state: LakeState) -> LakeState:
        """Return ``state`` as a foreseen batch leaves it, as far as preparing asks for it.

        That is which tables there are, their keys and floors; versions and progress are not right.
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
            )
            tables[collection] = replace(before, note=note)
        return replace(state, tables=tables)


_CREATED = TableState(0, CommitNote("", "", "", 0, 0, -1, ""))


def prepare(window: Window, index: int, state: LakeState, book: TableBook) -> PreparedBatch:
    """Settle columns and winners of batch ``index`` on top of ``state``; writes nothing.

    Raises:
        ConfigError: A table's columns or key cannot be settled.
        DataError: A value cannot be read.
    """
    mine = tuple(stats for stats in window.batch_stats if stats.batch == index)
    if index == SNAPSHOT_BATCH and state.head.frontier.epoch:
        mine += _swept(state, book)
    elif not state.head.frontier.streaming and (index == SNAPSHOT_BATCH or not window.whole):
        mine += _left_behind(window.contents, index, state, book)
    by_table: dict[str, list[BatchStats]] = {}
    for stats in mine:
        by_table.setdefault(stats.collection, []).append(stats)
    # A truncate of a table that has no rows yet, here or in the lake: nothing to sweep away.
    touched = [
        name
        for name, found in by_table.items()
        if name in state.tables or any(stats.rows for stats in found)
    ]
    touched.sort(key=lambda name: -sum(stats.rows for stats in by_table[name]))
    changes = of_batch(
        window.changes, window.cuts, index, window.frontier_position, snapshot=window.snapshot
    )

    def part(collection: str) -> TablePart:
        with explained(collection):
            return _part(changes, collection, by_table[collection], state, book, window.whole)

    parts = tuple(side_by_side(part, touched))
    text = [part.table.collection for part in parts if part.undecoded]
    with explained(", ".join(text)):
        folded = latest(changes, text)
    return PreparedBatch(index, mine, parts, folded)


def _swept(state: LakeState, book: TableBook) -> tuple[BatchStats, ...]:
    """Truncate every table below a snapshot that replaces them: what it lacks is gone.

    An empty table has no row in a snapshot, so this is about those, too, that it does not name.
    """
    floor = snapshot_floor(state.head.frontier.epoch)
    nowhere = TopicPartition("", 0)
    return tuple(
        BatchStats(SNAPSHOT_BATCH, nowhere, name, 0, 0, "", "", floor)
        for name in state.tables
        if book.is_read(name)
    )


def _left_behind(
    found: Contents, index: int, state: LakeState, book: TableBook
) -> tuple[BatchStats, ...]:
    """Truncate what a killed run wrote of an attempt at the snapshot that was replaced since.

    Such a table is in no publication. Where an epoch begins, every table is truncated anyhow.
    """
    nowhere = TopicPartition("", 0)
    unpublished = (
        (name, table.note)
        for name, table in state.tables.items()
        if name not in state.head.tables and not table.note.adopted_at and book.is_read(name)
    )
    floors = {name: swept_below(found, name, note.high) for name, note in unpublished}
    return tuple(
        BatchStats(index, nowhere, name, 0, 0, "", "", floor)
        for name, floor in floors.items()
        if floor
    )


def _part(
    changes: DataFrame,
    collection: str,
    batch_stats: Sequence[BatchStats],
    state: LakeState,
    book: TableBook,
    whole: bool,
) -> TablePart:
    previous = state.tables.get(collection)
    mine = changes.where(F.col("collection") == collection)
    table = book.spec(collection, batch_stats, mine, previous)
    if table.doubtful(book.encodings(collection)):
        batch_stats = [stats.doubted() for stats in batch_stats]
    if table.key_in_value and table.keyless is None:
        batch_stats = [stats.any_moved() for stats in batch_stats]
    if whole and table.keyless is None and may_move_without_header(batch_stats):
        marked = with_moves(mine)
        if not keys_passed(marked).isEmpty():
            mine, batch_stats = (
                marked,
                [replace(stats, relocated=stats.rows) for stats in batch_stats],
            )
    floor = max(
        [stats.floor for stats in batch_stats] + ([previous.note.floor] if previous else [])
    )
    undecoded = folds_undecoded(batch_stats, table, floor) and not (
        whole and rows_pass(mine, batch_stats)
    )
    foreseen = book.foreseen(table, previous)
    return TablePart(table, tuple(batch_stats), mine, floor, undecoded, foreseen)
