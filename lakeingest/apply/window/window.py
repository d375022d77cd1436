"""What one reading of the log holds, and how large it and its batches may be.

The window is kept (memory, then disk) until its batches are applied. How it is settled which
batches it holds: ``whole_transactions.py``, or ``per_event.py`` where there are no transactions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from lakeingest.apply.batch_stats import BatchStats
from lakeingest.apply.window.contents import Contents
from lakeingest.apply.window.continuity import LogRules
from lakeingest.apply.window.incomplete_transaction import IncompleteTransaction
from lakeingest.apply.window.offset_ranges import WindowRanges
from lakeingest.apply.window.resnapshot_cut_over import SnapshotCutOver
from lakeingest.apply.window.unreadable_records import UnreadableRecords
from lakeingest.position.epochs import Epoch
from lakeingest.transaction.cut import Cut, End


@dataclass(frozen=True)
class Window:
    """What one reading of the log holds.

    Attributes:
        ranges: The ranges read.
        contents: Summaries of the records.
        changes: All changes with their transaction's ``end_offset`` (null: pending), held.
        boundaries: Transactions that are over, held.
        snapshot: Whether batch 0, the initial snapshot, is complete in it.
        frontier_position: Position above everything released before the window.
        cuts: Batches of whole transactions, numbered from 1.
        asked_shares: Gives ``shares``, which may still be on their way.
        incomplete: The transaction that holds the rest back, if one is known to lack something.
        waiting: Transactions that are over and stay behind.
        again: Positions of ENDs that were released before and came again.
        epochs: Epochs of its transactions and of all before.
        cut_over: Where a new snapshot follows; the window ends there.
        redelivered: Gives this window with one batch of its rows below ``frontier_position``; None
            where it has no such row, or another batch.
        whole: Whether its batches hold whole transactions; else it is one batch of single events.
        awaited: What an initial snapshot in it waits for, as a warning; null: for nothing.
        in_the_way: The first END whose transaction is not complete; None: there is none.
        ends_read_to: Offset behind what was read of the transaction topic; None where a BEGIN
            waits for its END, or an END for a batch, or nothing was read of it.
        unreadable: Unreadable records that hold it back; the next window begins at them.
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
    unreadable: UnreadableRecords = field(default_factory=dict)
    awaited: str | None = None
    in_the_way: End | None = None

    def is_unfinished(self, through: int | None) -> bool:
        """Return whether a larger window may complete what this one did not.

        Of the transaction topic not more is needed than the END of the first transaction.

        Args:
            through: END that the first batch must reach, if there is one.
        """
        more_ends = self.ranges.more_ends and (not self.waiting or through is not None)
        return bool(self.ranges.cut_short) or more_ends

    @property
    def batch_stats(self) -> Sequence[BatchStats]:
        """What each batch holds."""
        return self.pending_stats()


@dataclass(frozen=True)
class Bounds:
    """How large windows and batches may be.

    Attributes:
        batch_events: ``lakeingest.batch.max.events``.
        batch_transactions: ``lakeingest.commit.max.transactions``.
        through: END that must close the first batch (see ``cut``); in a window that does not reach
            it there is no batch.
        final: Whether the source gets no more records.
        snapshot_again: Whether a new initial snapshot replaces what the tables hold.
        log: What is accepted of the log.
    """

    batch_events: int
    batch_transactions: int | None
    through: int | None = None
    final: bool = False
    snapshot_again: bool = False
    log: LogRules = field(default_factory=LogRules)
