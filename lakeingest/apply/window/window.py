"""Define the log of a pipeline, a window, which is one reading of it, and the bounds of both.

A window stays checkpointed (memory, then disk) until its batches are applied.
``whole_transactions.py`` cuts it into batches, or ``per_event.py`` where there are no transactions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame

from lakeingest.apply.batch_stats import BatchStats
from lakeingest.apply.table.record_schemas import Schemas
from lakeingest.apply.window.contents import Contents
from lakeingest.apply.window.continuity import LogRules
from lakeingest.apply.window.incomplete_transaction import IncompleteTransaction
from lakeingest.apply.window.offset_ranges import WindowRanges
from lakeingest.apply.window.resnapshot_cut_over import SnapshotCutOver
from lakeingest.apply.window.unreadable_records import UnreadableRecords
from lakeingest.engine.few_rows import records_for_few_rows
from lakeingest.errors import InvariantError
from lakeingest.plan.batches import SNAPSHOT_BATCH
from lakeingest.plan.spec import PipelineSpec
from lakeingest.position.epochs import Epoch
from lakeingest.source.contract import OffsetRange, Source
from lakeingest.transaction.cut import Cut, End, cut_out


@dataclass(frozen=True)
class PipelineLog:
    """The log of a pipeline, and how its records are read.

    Attributes:
        source: Gives the records.
        transaction_topic: None where each event is on its own.
        spec: How records become changes.
        counted: Condition over ``data_collection``: END's count of the collection's rows holds.
        schemas: Schemas of the records that were learned so far.
    """

    source: Source
    transaction_topic: str | None
    spec: PipelineSpec
    counted: Column
    schemas: Schemas

    def read(self, ranges: Sequence[OffsetRange]) -> DataFrame:
        """Read the records of ``ranges`` (``Source.read``); see ``records_for_few_rows``."""
        records = sum(part.end - part.start for part in ranges)
        return records_for_few_rows(self.source.read(ranges), records, len(ranges))

    def read_and_learn(self, ranges: Sequence[OffsetRange]) -> DataFrame:
        """Read records outside a window: this run may have read none with their schemas yet."""
        records = self.read(ranges)
        if self.schemas.needed:
            self.schemas.learn(records)
        return records


@dataclass(frozen=True)
class Window:
    """What one reading of the log holds.

    Attributes:
        ranges: The ranges read.
        contents: Summaries of the records.
        changes: All changes with their transaction's ``end_offset`` (NULL: pending), checkpointed.
        boundaries: Transactions that are over, checkpointed.
        snapshot: Whether batch 0, the initial snapshot, is complete in it.
        frontier_position: Position above everything released before the window.
        cuts: Batches of whole transactions, numbered from 1.
        pending_stats: Returns ``batch_stats``; waits for them if their job still runs.
        incomplete: The transaction that blocks the rest, if one is known to lack something.
        waiting: Number of transactions that are over and stay behind.
        again: Positions of redelivered ENDs, which were released before.
        epochs: Epochs of its transactions and of all before.
        cut_over: The snapshot cut-over at which the window ends; None: no new snapshot follows.
        redelivered: Returns this window with one batch of its rows below ``frontier_position``;
            None where it has no such row, or another batch.
        whole: Whether its batches hold whole transactions; else it is one batch of single events.
        awaited: What an initial snapshot in it waits for, as a warning; None: it waits for nothing.
        in_the_way: The first END whose transaction is not complete; None: there is none.
        ends: Its complete transactions, if each is to become a version of its own.
        unplaced: The END of a transaction behind others with rows that do not say what is before
            them; None: there is none.
        recut: Returns a window with other batches of these transactions.
        ends_read_to: Offset up to which the transaction topic was read; None where a BEGIN waits
            for its END, or an END for a batch, or nothing was read of it.
        alone_since: Kafka timestamp (milliseconds) of a BEGIN that has no row and may need no END
            (MariaDB's DDL); 0: there is none.
        unreadable: Unreadable records that block it; the next window begins at them.
        in_part: See ``WindowFacts``.
    """

    ranges: WindowRanges
    contents: Contents
    changes: DataFrame
    boundaries: DataFrame
    snapshot: bool
    frontier_position: str
    cuts: tuple[Cut, ...] = ()
    pending_stats: Callable[[], Sequence[BatchStats]] = tuple
    incomplete: IncompleteTransaction | None = None
    waiting: int = 0
    again: tuple[str, ...] = field(default_factory=tuple)
    epochs: tuple[Epoch, ...] = ()
    cut_over: SnapshotCutOver | None = None
    whole: bool = True
    redelivered: Callable[[], Window] | None = None
    ends_read_to: int | None = None
    alone_since: int = 0
    unreadable: UnreadableRecords = field(default_factory=dict)
    awaited: str | None = None
    in_the_way: End | None = None
    ends: tuple[End, ...] = ()
    unplaced: End | None = None
    recut: Callable[[Window, tuple[Cut, ...]], Window] | None = None
    in_part: Mapping[int, Mapping[str, int]] = field(default_factory=dict)

    @property
    def batches(self) -> list[int]:
        """Indexes of the batches, in order."""
        snapshot = [SNAPSHOT_BATCH] if self.snapshot else []
        return snapshot + [index + 1 for index in range(len(self.cuts))]

    def ends_of(self, index: int) -> tuple[End, ...]:
        """Return the transactions of a batch that are to become versions of their own."""
        if index == SNAPSHOT_BATCH or not self.ends:
            return ()
        cut = self.cuts[index - 1]
        return tuple(end for end in self.ends if cut.first_offset <= end.offset <= cut.last_offset)

    def with_parts(self, index: int, positions: Collection[str]) -> Window:
        """Return the window with smaller batches in place of one; later ones get higher numbers.

        Args:
            index: Index of the batch, which has several transactions.
            positions: See ``cut_out``.
        """
        if self.recut is None:
            message = "a batch of these transactions cannot be cut"
            raise InvariantError(message)
        parts = cut_out(self.ends_of(index), positions)
        return self.recut(self, (*self.cuts[: index - 1], *parts, *self.cuts[index:]))

    def is_unfinished(self, through: int | None) -> bool:
        """Return whether a larger window may complete what this one did not.

        Of the transaction topic, no more is needed than the END of the first transaction.

        Args:
            through: END that must close the first batch, if there is one.
        """
        more_ends = self.ranges.more_ends and (not self.waiting or through is not None)
        return bool(self.ranges.cut_short) or more_ends

    @property
    def batch_stats(self) -> Sequence[BatchStats]:
        """Statistics of each batch."""
        return self.pending_stats()


@dataclass(frozen=True)
class Bounds:
    """Bounds of windows and batches.

    Attributes:
        batch_events: ``lakeingest.batch.max.events``.
        batch_transactions: Most transactions of a batch; None: no bound.
        each: Whether each transaction becomes a version of its own.
        through: END that must close the first batch (see ``cut``); a window that ends before it has
            no batch.
        final: Whether the source gets no more records.
        snapshot_again: Whether a new initial snapshot replaces what the tables hold.
        delay_seconds: How long a record may be under way, where rows alone show transactions.
        log: Deviations of the log that are accepted.
        in_part: Offsets of the ENDs whose transactions are released without the rows that they
            lack.
    """

    batch_events: int
    batch_transactions: int | None
    each: bool = False
    through: int | None = None
    final: bool = False
    snapshot_again: bool = False
    delay_seconds: int = 0
    log: LogRules = field(default_factory=LogRules)
    in_part: frozenset[int] = frozenset()
