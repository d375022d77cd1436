"""Define the contract of every sink: one fenced commit per changeset, with the progress inside it.

``apply`` writes a changeset in exactly one commit or not at all. A redelivered changeset, whole or
in part, changes nothing (the law of ``payload/fold.py``). A writer with an older token changes
nothing. The commit itself stores the progress, as a ``CommitNote``, so that table and progress
cannot disagree after a crash. Rejected: a checkpoint beside the table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol

from pyspark.sql import Column, DataFrame

_TOKEN_BATCHES = 1_000_000_000
_FENCES = 10


def token(writer: int, batch: int) -> int:
    """Combine the writer's number and the batch: a later writer's token is always higher.

    The lowest tokens of a writer are reserved for ``fence_token``.
    """
    return writer * _TOKEN_BATCHES + _FENCES + 2 * batch + 1


def schema_token(batch_token: int) -> int:
    """Return the token of the schema change that is committed before a batch's commit."""
    return batch_token - 1


def fence_token(writer: int, attempt: int) -> int:
    """Return the token of a writer's empty commit, below all its batches (``attempt``: 0 to 9)."""
    return writer * _TOKEN_BATCHES + attempt


@dataclass(frozen=True)
class CommitNote:
    """Progress and identity, stored in a table commit's own metadata.

    Attributes:
        pipeline: Name of the pipeline that owns the table.
        collection: The source table.
        run: Identifier of the run that wrote the commit.
        token: ``token(writer, batch)``; the fence compares it.
        batch: Number of the publication that will contain this commit.
        end_offset: Offset of the last END in the batch; -1 for the initial snapshot.
        end_position: Position above every row up to that END.
        floor: Position of the newest truncate, which removes all rows below it. Empty: no truncate.
        high: Highest position ever applied to the table.
        partial_rows: Whether a row may have column values older than the row's position.
        tombstones: Whether the side table of a ``hard`` sink may contain tombstones.
        key: Key columns of the table.
        layout: Settings that assign each row to a file, where they must not change (a Hudi
            table's buckets); empty: no such settings.
        event: Whether the table has RFC-39's columns.
        partition: Columns that the table is partitioned by.
        adopted_at: Position of rows that another writer wrote without one, before this pipeline
            adopted the table. The table contains every change below it. Empty: no such rows.
        schema: Schema of the source's table in the batch's records
            (``plan.evolution.SourceSchema``, JSON). Empty: no record has shown it yet.
    """

    pipeline: str
    collection: str
    run: str
    token: int
    batch: int
    end_offset: int
    end_position: str
    floor: str = ""
    high: str = ""
    partial_rows: bool = False
    tombstones: bool = False
    key: tuple[str, ...] = ()
    layout: str = ""
    event: bool = False
    partition: tuple[str, ...] = ()
    adopted_at: str = ""
    schema: str = ""

    def to_json(self) -> str:
        """Serialise the note for the commit's metadata."""
        return json.dumps({"lakeingest": 1, **asdict(self)}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str | None) -> CommitNote | None:
        """Parse a commit's metadata; return None when lakeingest did not write the commit."""
        try:
            fields: Mapping[str, Any] = json.loads(text or "")
        except ValueError:
            return None
        if not isinstance(fields, dict) or fields.get("lakeingest") != 1:
            return None
        values = {name: fields[name] for name in cls.__dataclass_fields__ if name in fields}
        lists = {name: tuple(values.get(name, ())) for name in ("key", "partition")}
        return cls(**{**values, **lists})

    @property
    def fences(self) -> bool:
        """Return whether the commit only fences older writers.

        A fence copies the progress that its writer had read; an older writer may have committed
        since.
        """
        return self.token % _TOKEN_BATCHES < _FENCES

    def same_progress(self, other: CommitNote) -> bool:
        """Return whether two notes differ in their run and token at most."""
        return replace(self, run=other.run, token=other.token) == other

    def fenced(self, writer: int, run: str, attempt: int) -> CommitNote:
        """Return the note of an empty commit that fences the writers before ``writer``."""
        return replace(self, token=fence_token(writer, attempt), run=run)


@dataclass(frozen=True)
class Changeset:
    """The merge payloads of one table and batch.

    Attributes:
        frame: One row per key, with the table's columns, RFC-39's columns where the table has
            them, the metadata columns and ``FIRST_OP``. Not checkpointed: a sink that reads it
            more than once makes a local checkpoint.
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


@dataclass(frozen=True)
class TableState:
    """State of one table of a sink.

    Attributes:
        version: Newest version of the table.
        note: Progress in the newest commit that lakeingest wrote.
    """

    version: int
    note: CommitNote


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

    def fence(self, state: TableState, writer: int, run: str) -> TableState:
        """Commit the table's progress again under ``writer``, to fence older writers.

        Returns:
            The table's state now. Its note may be ahead of ``state``'s note if an older writer has
            committed meanwhile.

        Raises:
            FencedError: Other writers keep writing to the table.
            DataError: Another writer changed its rows after ``state``.
        """

    def read(self, collection: str, version: int) -> DataFrame:
        """Read the table as of ``version``, with tombstones and metadata columns."""

    def path(self, collection: str) -> str:
        """Return the table's path."""
