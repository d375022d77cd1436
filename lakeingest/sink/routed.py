"""Keep tables of several formats in one lake: each collection has the sink of its format."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from pyspark.sql import DataFrame

from lakeingest.commit_note import CommitNote
from lakeingest.sink.contract import Changeset, Sink, TableState, Upkeep, nothing


class RoutedSink:
    """A sink that forwards each call to the sink of the table's format."""

    def __init__(self, sinks: Mapping[str, Sink], format_of: Callable[[str], str]) -> None:
        """Bind to sinks.

        Args:
            sinks: Sinks by format name, one for every name that ``format_of`` returns.
            format_of: Returns a collection's format.
        """
        self._sinks = sinks
        self._format_of = format_of

    def path(self, collection: str) -> str:
        """Return the table's path."""
        return self._sink(collection).path(collection)

    def state(self, collection: str, since: int | None = None) -> TableState | None:
        """Return the table's state; None: the table does not exist; see the contract."""
        return self._sink(collection).state(collection, since)

    def refuse_foreign_files(self, collection: str) -> None:
        """Check that the table's path has no foreign files; see the contract."""
        self._sink(collection).refuse_foreign_files(collection)

    def apply(
        self, changeset: Changeset, note: CommitNote, previous: TableState | None
    ) -> TableState:
        """Write a changeset in one commit; see the contract."""
        return self._sink(note.collection).apply(changeset, note, previous)

    def divides(self, collection: str) -> bool:
        """Return whether ``apply_each`` can write a table; see the contract."""
        return self._sink(collection).divides(collection)

    def apply_each(
        self,
        changeset: Changeset,
        notes: Sequence[CommitNote],
        previous: TableState,
        before_commit: Callable[[int], None] = nothing,
    ) -> Sequence[TableState]:
        """Write a changeset in one commit per transaction; see the contract."""
        sink = self._sink(previous.note.collection)
        return sink.apply_each(changeset, notes, previous, before_commit)

    def commits(self, collection: str, since: int) -> Sequence[TableState]:
        """Return the commits of lakeingest after a version; see the contract."""
        return self._sink(collection).commits(collection, since)

    def fence(self, state: TableState, writer: int, run: str) -> TableState:
        """Fence older writers; see the contract."""
        return self._sink(state.note.collection).fence(state, writer, run)

    def tidy(self, state: TableState, upkeep: Upkeep) -> TableState:
        """Write a table's files better; see the contract."""
        return self._sink(state.note.collection).tidy(state, upkeep)

    def is_crowded(self, collection: str) -> bool:
        """Return whether to tidy a table should not wait; see the contract."""
        return self._sink(collection).is_crowded(collection)

    def kept_since(self, collection: str) -> datetime:
        """Return since when a table has kept what its older versions need; see the contract."""
        return self._sink(collection).kept_since(collection)

    def expire(self, collection: str, oldest: int, age: timedelta) -> None:
        """Remove the files that only older versions need; see the contract."""
        self._sink(collection).expire(collection, oldest, age)

    def finish(self) -> None:
        """Wait for work beside the run; see the contract."""
        for sink in self._sinks.values():
            sink.finish()

    def read(self, collection: str, version: int) -> DataFrame:
        """Read the table as of ``version``."""
        return self._sink(collection).read(collection, version)

    def _sink(self, collection: str) -> Sink:
        return self._sinks[self._format_of(collection)]
