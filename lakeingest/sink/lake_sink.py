"""The rules of the contract that are the same for every format: progress, fence, tombstones.

A format supplies its tables (``LakeTable``) and the one commit of a changeset (``_commit``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import takewhile
from typing import ClassVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakeingest.commit_note import CommitNote
from lakeingest.engine.local_checkpoint import local_checkpoint
from lakeingest.errors import FencedError, InvariantError, TransientError
from lakeingest.sink.contract import Changeset, TableState, Upkeep, nothing
from lakeingest.sink.foreign_changes import no_position_error, without_reverted
from lakeingest.sink.foreign_files import refuse_files, refuse_other_format
from lakeingest.sink.lake_table import LakeTable
from lakeingest.sink.merge_law import MergeLaw
from lakeingest.sink.partition_types import kept_by_folders
from lakeingest.sink.progress import carry_over, note_from_ledger, require_ownership
from lakeingest.sink.settings import SinkSettings
from lakeingest.sink.tombstones import (
    above_tombstones,
    may_be_below_tombstones,
    tombstones_of,
)

_FENCE_ATTEMPTS = 10
_TIDY_ATTEMPTS = 5


class LakeSink(ABC):
    """Tables of one format in one lake, one per source collection."""

    _removes_rows: ClassVar[bool]
    """Whether the sink itself removes the rows of ``hard`` deletes."""

    def __init__(self, spark: SparkSession, settings: SinkSettings) -> None:
        """Bind to a lake.

        Args:
            spark: Session with the format's extension.
            settings: Settings of the pipeline.
        """
        self.settings = settings
        self._spark = spark

    @abstractmethod
    def table(self, collection: str) -> LakeTable:
        """Return a collection's table, which need not exist."""

    @abstractmethod
    def tombstones(self, collection: str) -> LakeTable:
        """Return the side table of a collection's tombstones, which need not exist."""

    @abstractmethod
    def _commit(
        self, changeset: Changeset, note: CommitNote, previous: TableState | None
    ) -> TableState:
        """Write ``changeset`` in one commit that carries ``note``; see ``Sink.apply``."""

    @abstractmethod
    def _tidy(self, state: TableState, upkeep: Upkeep) -> None:
        """Write a table's files better; see ``Sink.tidy``."""

    @abstractmethod
    def kept_since(self, collection: str) -> datetime:
        """Return since when a table has kept what its older versions need; see the contract."""

    @abstractmethod
    def is_crowded(self, collection: str) -> bool:
        """Return whether to tidy a table should not wait; see the contract."""

    @abstractmethod
    def expire(self, collection: str, oldest: int, age: timedelta) -> None:
        """Remove the files that only older versions need; see the contract."""

    def finish(self) -> None:  # noqa: B027 - most formats have no such work
        """Do nothing: no work is beside the run."""

    def path(self, collection: str) -> str:
        """Return the table's folder."""
        return self.settings.folders.table(collection)

    def read(self, collection: str, version: int | None = None) -> DataFrame:
        """Read the table as of ``version``; None: its newest version."""
        return self.table(collection).read(version)

    def state(self, collection: str, since: int | None = None) -> TableState | None:
        """Return version and progress; None: there is no table; see the contract.

        Raises:
            ConfigError: The folder holds a table of another pipeline or of another format.
            DataError: Another writer changed rows after ``since``.
        """
        table = self.table(collection)
        version, note = table.newest_note()
        if version < 0:
            refuse_other_format(self._spark, table.path, table.kind, collection)
            return None
        if table.has_lost_progress(note):
            note = note_from_ledger(note, self.settings.notes(collection))
        note = require_ownership(note, self.settings.pipeline, collection, table.path, table.kind)
        return self._check_foreign_changes(TableState(version, note), since)

    def _check_foreign_changes(
        self, now: TableState, since: int | None, own: int = 0
    ) -> TableState:
        """Return ``now`` after a check that no other writer changed rows after ``since``.

        Where other writers may, it checks that each row has a position.

        Args:
            now: The table's state.
            since: Version up to which the commits are known; None: no check.
            own: Number of this writer's own commits after ``since``. Versions are different whole
                numbers, so up to ``since + own`` there is no room for another commit.

        Raises:
            DataError: Another writer changed rows and may not, or inserted rows without a position.
        """
        collection, position = now.note.collection, self.settings.names.position
        if since is None or now.version <= since + own:
            return now
        table, accepted = self.table(collection), self.settings.foreign
        if table.refuse_foreign_change(collection, since, accepted=accepted):
            without_position = table.read(now.version).where(F.col(position).isNull())
            if not without_position.isEmpty():
                raise no_position_error(collection, position)
        return now

    def refuse_foreign_files(self, collection: str) -> None:
        """Raise an error for a folder with files that are no table of the format.

        It refuses tombstones beside the folder, too. Call it only before the first claim. Later,
        both may be remains of a first commit whose run was killed.
        """
        table = self.table(collection)
        if not table.exists():
            refuse_files(self._spark, table.path, table.kind)

    def fence(self, state: TableState, writer: int, run: str) -> TableState:
        """Commit the table's progress again under ``writer``; see the contract.

        An older writer may commit between the read of ``state`` and the fence. So read the
        progress again after the fence, and fence again with that progress.
        """
        since, collection = state.version, state.note.collection
        table = self.table(collection)
        for attempt in range(_FENCE_ATTEMPTS):
            note = state.note.fenced(writer, run, attempt)
            if self.settings.hard and note.tombstones:
                self.tombstones(collection).append_nothing(_side_note(note))
            table.append_nothing(note)
            version, newest = table.newest_note()
            if newest is None or (newest.run, newest.token) != (note.run, note.token):
                continue
            if newest.same_progress(note):
                return self._check_foreign_changes(TableState(version, newest), since, own=1)
            state = TableState(version, newest)
        message = f"Other runs keep writing to table '{collection}'; stop them first."
        raise FencedError(message)

    def tidy(self, state: TableState, upkeep: Upkeep) -> TableState:
        """Write a table's files better; try again where a run commits at the same time."""
        collection = state.note.collection
        for _ in range(_TIDY_ATTEMPTS):
            try:
                self._tidy(state, upkeep)
            except Exception as error:
                text = f"{type(error).__name__} {error}"
                if self.table(collection).conflict(text, collection) is None:
                    raise
                continue
            now = self.state(collection, since=state.version)
            if now is not None:
                return now
        message = (
            f"Table '{collection}' was written each time that maintenance tried to write its files "
            "better. Nothing is lost; maintain the lake again, or between runs."
        )
        raise TransientError(message)

    def apply(
        self, changeset: Changeset, note: CommitNote, previous: TableState | None
    ) -> TableState:
        """Write the changeset in one commit; ``hard`` deletes commit the tombstones before it."""
        note = carry_over(note, changeset, previous, hard=self.settings.hard)
        changeset = self._above_tombstones(kept_by_folders(changeset), note, previous)
        if self.settings.hard and changeset.deletes:
            changeset = replace(changeset, frame=local_checkpoint(changeset.frame))
            rows = tombstones_of(changeset, self.settings.names)
            # The type of a key may have become wider since the last delete.
            self.tombstones(note.collection).append_wider(rows, _side_note(note))
        state = self._commit(changeset, note, previous)
        # Check after the commit: commits between an earlier check and this one count, too.
        return self._check_foreign_changes(state, previous.version if previous else None, own=1)

    def divides(self, collection: str) -> bool:
        """Return whether ``apply_each`` can write a table; see the contract."""
        del collection
        return False

    def apply_each(
        self,
        changeset: Changeset,
        notes: Sequence[CommitNote],
        previous: TableState,
        before_commit: Callable[[int], None] = nothing,
    ) -> Sequence[TableState]:
        """Write the changeset in one commit per transaction, after all of its tombstones."""
        notes = [
            carry_over(note, _up_to(changeset, note), previous, hard=self.settings.hard)
            for note in notes
        ]
        changeset = self._above_tombstones(changeset, notes[-1], previous)
        changeset = replace(changeset, frame=local_checkpoint(changeset.frame))
        if self.settings.hard and changeset.deletes:
            rows = tombstones_of(changeset, self.settings.names)
            self.tombstones(notes[-1].collection).append_wider(rows, _side_note(notes[-1]))
        states, commits = self._commit_each(changeset, notes, previous, before_commit)
        if not states and self.settings.hard and changeset.deletes:
            # Rows that arrive late must find these tombstones applied.
            last = notes[-1].not_before(previous.note)
            note = replace(last, high=max(last.high, changeset.high))
            states = [self.table(note.collection).append_nothing(note)]
        if states:
            self._check_foreign_changes(states[-1], previous.version, own=commits)
        return states

    def _commit_each(
        self,
        changeset: Changeset,
        notes: Sequence[CommitNote],
        previous: TableState,
        before_commit: Callable[[int], None],
    ) -> tuple[Sequence[TableState], int]:
        """Write ``changeset`` in one commit per transaction; see ``Sink.apply_each``.

        Returns:
            The table's state after each transaction, and the number of commits.
        """
        del changeset, notes, previous, before_commit
        message = f"{type(self).__name__} divides no table"
        raise InvariantError(message)

    def commits(self, collection: str, since: int) -> Sequence[TableState]:
        """Return the commits of lakeingest after a version; see the contract."""
        standing = without_reverted(self.table(collection).commits())
        newest_first = takewhile(lambda commit: commit.version > since, standing)
        noted = ((commit, CommitNote.of_rows(commit.metadata)) for commit in newest_first)
        states = [TableState(commit.version, note) for commit, note in noted if note is not None]
        return states[::-1]

    def _above_tombstones(
        self, changeset: Changeset, note: CommitNote, previous: TableState | None
    ) -> Changeset:
        # Without ``hard``, too: only the side table has the positions of rows that an earlier
        # ``hard`` run removed.
        if previous is None or not may_be_below_tombstones(changeset, previous):
            return changeset
        # Higher ones are of commits that a killed run did not come to.
        is_applied = F.col(self.settings.names.position) <= F.lit(previous.note.high)
        tombstones = self.tombstones(note.collection).read().where(is_applied)
        return above_tombstones(changeset, tombstones, self.settings.names)

    def _law(self, changeset: Changeset, note: CommitNote, schema: StructType) -> MergeLaw:
        """Return the merge law of a changeset; ``schema`` is the table's after the merge."""
        return MergeLaw(
            names=self.settings.names,
            schema=schema,
            hard=self.settings.hard and self._removes_rows,
            null_missing=self.settings.null_missing,
            partial=note.partial_rows or bool(changeset.floor),
            columns=tuple(changeset.columns),
            key=changeset.key,
            fillable=changeset.fillable,
            partition=changeset.partition,
            forgiven=changeset.forgiven,
            deletes=changeset.deletes,
            floor=changeset.floor,
            floor_event=tuple(changeset.floor_event.items()),
        )


def _up_to(changeset: Changeset, note: CommitNote) -> Changeset:
    """Return a changeset with its highest position up to the transaction of a note."""
    return replace(changeset, high=min(changeset.high, note.end_position))


def _side_note(note: CommitNote) -> CommitNote:
    """Return the note for the side table, which is neither partitioned nor adopted."""
    return replace(note, partition=(), adopted_at="")
