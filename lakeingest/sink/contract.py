"""Define the contract of every sink: one fenced commit per changeset, with the progress inside it.

``apply`` writes a changeset in exactly one commit or not at all. A redelivered changeset, whole or
in part, changes nothing (the law of ``payload/fold.py``). A writer with an older token changes
nothing. The commit itself stores the progress, as a ``CommitNote``, so that table and progress
cannot disagree after a crash. Rejected: a checkpoint beside the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from lakeingest.commit_note import CommitNote
from lakeingest.frame_schemas import END, FIRST_OP, LINK


def nothing(commits: int, /) -> None:
    """Do nothing before a commit."""


FRAME_ONLY = (FIRST_OP, LINK, END)
"""Columns of a changeset's frame that no table stores."""


@dataclass(frozen=True, kw_only=True)
class Changeset:
    """The merge payloads of one table and batch.

    Attributes:
        frame: One row per key, with the table's columns, RFC-39's columns where the table has
            them, the metadata columns and ``FIRST_OP``. Not checkpointed: a sink that reads it
            more than once makes a local checkpoint. Where each transaction has its own payloads,
            there is a row per key and transaction, with ``END``.
        columns: Source columns in the order of the source table.
        key: Names of the key columns.
        fillable: Columns whose values can be unavailable.
        floor: Position of the batch's newest truncate; empty: no truncate.
        low: Lowest position in the batch.
        high: Highest position in the batch.
        rows: Upper bound of the number of payloads.
        inserts_only: Whether every key's first change is an insert, so that no key should exist in
            the table.
        masked: Whether some payload lacks a column's value.
        deletes: Whether some payload is a tombstone.
        size: Upper bound of the bytes of its rows' text; a sink chooses a join by it.
        floor_event: Values of RFC-39's columns for the rows that the truncate at ``floor`` deletes.
        partition: Columns that the table is partitioned by.
        forgiven: Columns that some event lacks because the source has dropped them. Such a column
            without any known value is NULL and not missing.
        fills: Columns that this batch adds, with the default to backfill in the table's present
            rows.
    """

    frame: DataFrame
    columns: Sequence[str]
    key: tuple[str, ...]
    fillable: tuple[str, ...]
    floor: str
    low: str
    high: str
    rows: int
    inserts_only: bool
    masked: bool
    deletes: bool
    size: int
    floor_event: Mapping[str, object] = field(default_factory=dict)
    partition: tuple[str, ...] = ()
    forgiven: tuple[str, ...] = ()
    fills: Mapping[str, Column] = field(default_factory=dict)

    @property
    def schema(self) -> StructType:
        """Return the schema of the payloads as a table stores them."""
        return StructType([item for item in self.frame.schema if item.name not in FRAME_ONLY])


@dataclass(frozen=True)
class TableState:
    """State of one table of a sink.

    Attributes:
        version: Newest version of the table.
        note: Progress in the newest commit that lakeingest wrote.
    """

    version: int
    note: CommitNote


@dataclass(frozen=True, kw_only=True)
class Upkeep:
    """What maintenance does to one table.

    Attributes:
        oldest: Oldest version that must stay readable.
        keeps: For how long a version must stay readable after the next one has followed.
        tombstones_below: Position below which tombstones are removed; empty: none.
        erases_values: Whether deleted rows lose their values, but for key and metadata.
    """

    oldest: int
    keeps: timedelta
    tombstones_below: str = ""
    erases_values: bool = False


class Sink(Protocol):
    """A lake format."""

    def state(self, collection: str, since: int | None = None) -> TableState | None:
        """Return the table's state; None: the table does not exist.

        Args:
            collection: The source table.
            since: Version up to which the commits are known; the sink checks the later ones for
                changes of other writers. None: no check.

        Raises:
            ConfigError: The path holds a table that is not this pipeline's.
            DataError: Another writer changed its rows after ``since``.
        """

    def refuse_foreign_files(self, collection: str) -> None:
        """Check, before the first claim of a lake, that the table's path has no foreign files.

        Args:
            collection: The source table.

        Raises:
            ConfigError: There are files that lakeingest did not write.
        """

    def apply(
        self, changeset: Changeset, note: CommitNote, previous: TableState | None
    ) -> TableState:
        """Write ``changeset`` in one commit that carries ``note``.

        Args:
            changeset: Payloads to merge.
            note: Progress. The sink takes floor, high and similar values over from ``previous``.
            previous: The table's state that this writer knows; None: create the table.

        Returns:
            The table's state with this commit.

        Raises:
            FencedError: A later writer has claimed this table.
            DataError: The changeset does not fit the table; or another writer changed its rows
                after ``previous``, which the sink detects after its commit.
        """

    def divides(self, collection: str) -> bool:
        """Return whether ``apply_each`` can write a table, or could write one that it makes."""

    def apply_each(
        self,
        changeset: Changeset,
        notes: Sequence[CommitNote],
        previous: TableState,
        before_commit: Callable[[int], None] = nothing,
    ) -> Sequence[TableState]:
        """Write ``changeset`` in one commit per transaction that changes the table.

        Args:
            changeset: Payloads to merge, one per key and transaction (``END``), without a truncate.
            notes: Progress, one note per transaction of the batch, in their order; see ``apply``.
            previous: The table's state that this writer knows.
            before_commit: Called with the number of commits made, when all files are written and
                before each commit.

        Returns:
            The table's state after each transaction that changed it, in their order.

        Raises:
            FencedError: See ``apply``; some of the commits may have been made.
            TransientError: Another writer changed the table meanwhile; the commits up to then stay.
            DataError: See ``apply``.
        """

    def commits(self, collection: str, since: int) -> Sequence[TableState]:
        """Return lakeingest's commits after version ``since``, oldest first, without fences."""

    def fence(self, state: TableState, writer: int, run: str) -> TableState:
        """Commit the table's progress again under ``writer``, to fence older writers.

        Returns:
            The table's state now. Its note may be ahead of ``state``'s note if an older writer has
            committed meanwhile.

        Raises:
            FencedError: Other writers keep writing to the table.
            DataError: Another writer changed its rows after ``state``.
        """

    def tidy(self, state: TableState, upkeep: Upkeep) -> TableState:
        """Write a table's files better, without a change of any row that a snapshot shows.

        First have the table keep what ``upkeep`` wants to stay readable. A kill at any moment
        leaves the table whole. Runs may write the table meanwhile.

        Returns:
            The table's state now; its version is another one if files were written.

        Raises:
            TransientError: Other writers kept changing the table.
            DataError: Another writer changed its rows after ``state``.
        """

    def is_crowded(self, collection: str) -> bool:
        """Return whether a table has so many small files that to tidy it should not wait."""

    def kept_since(self, collection: str) -> datetime:
        """Return the time (UTC) since when a table has kept what its older versions need.

        What a version had that was followed earlier may be lost already.
        """

    def expire(self, collection: str, oldest: int, age: timedelta) -> None:
        """Remove the files that only versions below ``oldest`` need.

        Args:
            collection: The source table, which has a table in the lake.
            oldest: Oldest version that must stay readable.
            age: Keep what the table had, or what a writer began, in this time.

        Raises:
            TransientError: Other writers kept changing the table.
        """

    def finish(self) -> None:
        """Wait for work beside the run, such as checkpoints of logs, before the run ends."""

    def read(self, collection: str, version: int) -> DataFrame:
        """Read the table as of ``version``, with tombstones and metadata columns."""

    def path(self, collection: str) -> str:
        """Return the table's path."""
