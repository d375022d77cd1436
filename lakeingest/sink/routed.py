"""Tables of several formats in one lake: each collection goes to the sink of its format.

A table's format is what the configuration says of it. A folder that holds a table of another format
is refused: the rows would be in the one, and readers would find the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame

from lakeingest.errors import ConfigError
from lakeingest.sink.contract import Changeset, CommitNote, Sink, TableState


class RoutedSink:
    """Sinks by format; a sink itself."""

    def __init__(self, sinks: Mapping[str, Sink], format_of: Callable[[str], str]) -> None:
        """Bind to sinks.

        Args:
            sinks: By the format's name; every one that ``format_of`` returns.
            format_of: Tells a collection's format.
        """
        self._sinks = sinks
        self._format_of = format_of

    def path(self, collection: str) -> str:
        """Return where the table lies."""
        return self._sink(collection).path(collection)

    def state(self, collection: str, since: int | None = None) -> TableState | None:
        """Return the table's state; null when it does not exist; see the contract.

        Raises:
            ConfigError: The path holds a table that is not this pipeline's, or of another format.
        """
        found = self._sink(collection).state(collection, since)
        if found is not None:
            return found
        wanted = self._format_of(collection)
        for name, sink in self._sinks.items():
            if name != wanted and sink.state(collection) is not None:
                message = (
                    f"Table '{collection}' is a {name.title()} table in the lake, but the "
                    f"configuration says {wanted}. A format cannot change in place: load the table "
                    f"anew, or set lakeingest.table.{collection}.format={name}."
                )
                raise ConfigError(message)
        return None

    def refuse_foreign_files(self, collection: str) -> None:
        """Check that nobody else's files lie at the table's path; see the contract."""
        self._sink(collection).refuse_foreign_files(collection)

    def apply(
        self, changeset: Changeset, note: CommitNote, previous: TableState | None
    ) -> TableState:
        """Land a changeset; see the contract."""
        return self._sink(note.collection).apply(changeset, note, previous)

    def fence(self, state: TableState, writer: int, run: str) -> TableState:
        """Shut older writers out; see the contract."""
        return self._sink(state.note.collection).fence(state, writer, run)

    def read(self, collection: str, version: int) -> DataFrame:
        """Read the table as of ``version``."""
        return self._sink(collection).read(collection, version)

    def _sink(self, collection: str) -> Sink:
        return self._sinks[self._format_of(collection)]
