"""One table's part of a batch, and how its changes become one payload per key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from pyspark.sql import DataFrame

from lakeingest.apply.batch_stats import BatchStats
from lakeingest.plan.spec import Keyless, TableSpec
from lakeingest.plan.table import rows_above


class Fold(Enum):
    """How the changes of a table become one payload per key."""

    UNDECODED = "the latest change per key, found before a row is decoded, for many tables at once"
    WHOLE_ROWS = "the latest decoded row per key"
    PARTIAL_ROWS = "decoded rows of which some lack values, have their key inside, or change it"


@dataclass(frozen=True)
class TablePart:
    """One table's part of a batch.

    Attributes:
        table: Columns and key of the table.
        batch_stats: Summaries of its changes.
        changes: Its changes in the batch.
        floor: Position of its newest truncate so far; empty: none.
        fold: How its changes become payloads.
        foreseen: Whether the table's columns after the batch are known before it is written.
        cut_out_at: Position of a row whose transaction needs a commit of its own; empty: some
            transaction needs it; None: each one can become a version of the table at once.
    """

    table: TableSpec
    batch_stats: tuple[BatchStats, ...]
    changes: DataFrame
    floor: str
    fold: Fold
    foreseen: bool
    cut_out_at: str | None = None

    @property
    def rows(self) -> DataFrame:
        """Its row changes that no truncate sweeps away."""
        return rows_above(self.changes, self.floor)

    @property
    def high(self) -> str:
        """Highest position of its changes."""
        return max((max(stats.high, stats.floor) for stats in self.batch_stats), default="")

    @property
    def masked(self) -> bool:
        """Whether one of its changes may leave a value out."""
        return self.table.partial or any(stats.masked for stats in self.batch_stats)

    @property
    def has_key_changes(self) -> bool:
        """Whether one of its changes gives a row another key."""
        return any(stats.moved for stats in self.batch_stats)

    @property
    def asks_lake(self) -> bool:
        """Whether its changeset may need a key look-up in the lake."""
        if self.fold is not Fold.PARTIAL_ROWS:
            return False
        if self.table.key_in_value:
            return self.table.keyless is not Keyless.APPEND
        return any(stats.moved or stats.relocated for stats in self.batch_stats)

    @property
    def counts_undecoded(self) -> bool:
        """Whether records' keys show how many payloads it has, and of which new rows.

        They do where each change is of one row, and equal keys have equal octets: in every part
        that folds undecoded, and in some of the others.
        """
        if not self.table.folds_by_octets:
            return False
        return not (self.has_key_changes or self.asks_lake or _swept(self.batch_stats, self.floor))


def choose_fold(
    batch_stats: Sequence[BatchStats], table: TableSpec, floor: str, *, exchanges: bool
) -> Fold:
    """Return how a table's changes of a batch fold.

    To fold undecoded is the cheapest. It is wrong where a change leaves a value out, where keys are
    not bare or hold more than the table's, where a truncate sweeps some of the rows away, or where
    rows may exchange record keys (``payload/deferred_key_order.py``).

    Args:
        batch_stats: Summaries of the table's changes in the batch.
        table: Columns and key.
        floor: Position of the newest truncate so far, this batch's included; empty: none.
        exchanges: Whether the batch holds whole transactions and rows exchange record keys in one.
    """
    masked = table.partial or any(stats.masked for stats in batch_stats)
    relocated = any(stats.relocated for stats in batch_stats)
    if table.folds_by_octets and not (masked or exchanges or _swept(batch_stats, floor)):
        return Fold.UNDECODED
    by_row = masked or table.key_in_value or table.key_is_part or relocated
    return Fold.PARTIAL_ROWS if by_row else Fold.WHOLE_ROWS


def _swept(batch_stats: Sequence[BatchStats], floor: str) -> bool:
    """Return whether a truncate sweeps some of the rows away."""
    return any(stats.low <= floor for stats in batch_stats if stats.low)
