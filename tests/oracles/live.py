"""The oracle of a live run: a folder that makes it look like a recorded one to the checkers.

``begin`` before the workload, ``follow`` now and then while it runs (or never), ``end`` after it.
What is written is what ``tests.recordings.oracle.Oracle`` reads: ``initial``, ``final`` and
``commits.jsonl.gz``. The commits are flushed as whole gzip members, so that a checker can read
them while the run goes on.
"""

from __future__ import annotations

import gzip
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from threading import Lock
from typing import Any

import pymysql

from tests.oracles.binlog import Binlog
from tests.oracles.binlog import kind_of as kind_of_mariadb
from tests.oracles.changes import Change, Commit, Field, Kind
from tests.oracles.running import RunningTotals
from tests.oracles.slot import Slot, kind_of
from tests.oracles.tables import TableShape, table_shape, text_rows, write_table
from tests.recordings.oracle import Oracle, Totals
from tests.workloads.source import Source

_ATTEMPTS = 20
_TABLE_CHANGED = 1412


class LiveOracle(ABC):
    """The truth of a run, whatever the database.

    Args:
        source: The database under the workload.
        captured: Bare names of the tables that the connector captures.
        folder: Where the truth is written; made if it is not there.

    Attributes:
        states: The totals of all tables after each commit so far, from 0.
    """

    def __init__(self, source: Source, captured: tuple[str, ...], folder: Path) -> None:
        self._source = source
        self._captured = captured
        self._folder = folder
        self._commits = folder / "commits.jsonl.gz"
        self._totals = RunningTotals({})
        self._written = 0
        # A reader that checks meanwhile follows too, and what was read once is read by nobody else.
        self._following = Lock()
        self.states: list[Totals] = []

    @abstractmethod
    def _snapshot(self) -> Any:
        """Mark the beginning; return a connection that sees the database as of it."""

    @abstractmethod
    def _since(self) -> Iterator[Commit]:
        """Yield the commits since the last call, in commit order."""

    @abstractmethod
    def _release(self) -> None:
        """Let the database throw its log away."""

    @abstractmethod
    def _kind_of(self, type_name: str) -> Kind | None:
        """Return how a column of this type is measured."""

    def begin(self) -> None:
        """Mark the beginning and write the tables as of it."""
        with closing(self._snapshot()) as connection:
            shapes = [self._shape(connection, table) for table in self._captured]
            self._totals = RunningTotals({shape.name: shape.key for shape in shapes})
            for shape in shapes:
                write_table(connection, self._source.family, shape, self._folder / "initial")
                self._count(connection, shape)
            connection.rollback()
        types = {shape.name: dict(shape.types) for shape in shapes}
        (self._folder / "initial" / "types.json").write_text(json.dumps(types, indent=1), "utf-8")
        self._commits.unlink(missing_ok=True)
        self._written = 0
        self.states = []
        self._write([{"n": 0, "totals": self._totals.totals}])

    def follow(self, altered: Callable[[Commit], Commit | None] | None = None) -> int:
        """Write the commits since the last call; return how many there are in all.

        Several threads may call it.

        Args:
            altered: Changes a commit, or drops it: to see that whoever checks finds out.
        """
        with self._following:
            self._write(self._lines(altered))
            return self._written - 1

    def end(self) -> Oracle:
        """Write what is left of the commits, and the tables as they are now; return all of it.

        What kept the log from being thrown away is given up: there is no ``follow`` after this.
        """
        self.follow()
        with closing(self._source.connect()) as connection:
            for table in self._captured:
                shape = self._shape(connection, table)
                write_table(connection, self._source.family, shape, self._folder / "final")
            connection.rollback()
        self._release()
        return Oracle(self._folder)

    @property
    def totals(self) -> RunningTotals:
        """The totals after the last commit that was followed."""
        return self._totals

    def _shape(self, connection: Any, table: str) -> TableShape:
        return table_shape(connection, self._source.family, self._source.namespace, table)

    def _count(self, connection: Any, shape: TableShape) -> None:
        running = self._totals.tables[shape.name]
        kinds = {name: self._kind_of(kind) for name, kind in shape.types.items()}
        # Named also where there is no row yet, so that all measures stand in the first line.
        running.name(kinds)
        for row in text_rows(connection, self._source.family, shape):
            after = {
                name: Field(kind, value)
                for (name, kind), value in zip(kinds.items(), row, strict=True)
            }
            running.apply(Change("insert", shape.name, after=after))

    def _lines(
        self, altered: Callable[[Commit], Commit | None] | None
    ) -> Iterator[Mapping[str, object]]:
        for read in self._since():
            commit = altered(read) if altered else read
            if commit is not None:
                counted, totals = self._totals.apply(commit.changes)
                number = {"n": self._written}
                yield {**number, **commit.identity, "changes": counted, "totals": totals}

    def _write(self, lines: Iterator[Mapping[str, object]] | list[dict[str, object]]) -> None:
        with gzip.open(self._commits, "at", encoding="utf-8", compresslevel=3) as file:
            for line in lines:
                text = json.dumps(line, separators=(",", ":"))
                file.write(text + "\n")
                self._written += 1
                # From the text: the totals themselves go on counting.
                known = self.states[-1] if self.states else {}
                self.states.append({**known, **json.loads(text)["totals"]})


class PostgresOracle(LiveOracle):
    """The truth of a run on PostgreSQL, from a slot with ``test_decoding``."""

    def __init__(self, source: Source, captured: tuple[str, ...], folder: Path) -> None:
        super().__init__(source, captured, folder)
        self._slot = Slot(source, frozenset(captured))

    def begin(self) -> None:
        """Mark the beginning and write the tables as of it.

        Raises:
            TimeoutError: No slot could be read.
        """
        for _ in range(_ATTEMPTS):
            super().begin()
            if self._slot.is_sound():
                return
            self._slot.drop()
        message = f"each of {_ATTEMPTS} slots was born broken"
        raise TimeoutError(message)

    def _snapshot(self) -> Any:
        return self._slot.create()

    def _since(self) -> Iterator[Commit]:
        return self._slot.read()

    def _release(self) -> None:
        self._slot.drop()

    def _kind_of(self, type_name: str) -> Kind | None:
        return kind_of(type_name)


class MariadbOracle(LiveOracle):
    """The truth of a run on MariaDB, from its binary log."""

    def __init__(self, source: Source, captured: tuple[str, ...], folder: Path) -> None:
        super().__init__(source, captured, folder)
        self._binlog = Binlog(source, captured)

    def begin(self) -> None:
        """Mark the beginning and write the tables as of it."""
        for _ in range(_ATTEMPTS):
            try:
                return super().begin()
            except pymysql.err.OperationalError as error:
                # A TRUNCATE after the snapshot: the table is another one now.
                if error.args[0] != _TABLE_CHANGED:
                    raise
        message = f"a table was truncated in each of {_ATTEMPTS} attempts to read all of them"
        raise TimeoutError(message)

    def _snapshot(self) -> Any:
        return self._binlog.begin()

    def _since(self) -> Iterator[Commit]:
        return self._binlog.read()

    def _release(self) -> None:
        """Nothing: MariaDB keeps its log as long as it is told to."""

    def _kind_of(self, type_name: str) -> Kind | None:
        return kind_of_mariadb(type_name)


def live_oracle(source: Source, captured: tuple[str, ...], folder: Path) -> LiveOracle:
    """Return the oracle for a source's family."""
    family = PostgresOracle if source.family == "postgresql" else MariadbOracle
    return family(source, captured, folder)
