"""What every sink promises: one fenced commit per changeset, with progress inside it.

``apply`` lands a changeset in exactly one commit or not at all; a changeset that comes again, in
whole or in part, changes nothing (the law of ``payload/fold.py``); a writer with an older token
changes nothing. Progress travels in the commit itself as a ``CommitNote``, so that table and
progress cannot disagree after a crash. The rejected way is a checkpoint beside the table.
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

    The lowest tokens of a writer are left to ``fence_token``.
    """
    return writer * _TOKEN_BATCHES + _FENCES + 2 * batch + 1


def schema_token(batch_token: int) -> int:
    """Token of the schema change that goes before a batch's commit."""
    return batch_token - 1


def fence_token(writer: int, attempt: int) -> int:
    """Token of a writer's empty commit, below all its batches (``attempt``: 0 to 9)."""
    return writer * _TOKEN_BATCHES + attempt


@dataclass(frozen=True)
class CommitNote:
    """Progress and identity, stored in a table commit's own metadata.

    Attributes:
        pipeline: Name of the pipeline that owns the table.
        collection: The source table.
        run: Identifier of the run that wrote the commit.
        token: ``token(writer, batch)``; the fence compares it.
        batch: The publication that this commit is part of, once published.
        end_offset: Offset of the last END in the batch; -1 for the initial snapshot.
        end_position: Position above every row up to that END.
        floor: Position of the newest truncate; everything below it is gone. Empty: none.
        high: Highest position ever applied to the table.
        partial_rows: Whether a row may have columns older than itself.
        tombstones: Whether the side table of a ``hard`` sink may hold tombstones.
        key: Key columns of the table.
        layout: What decides in which file a row lies, where that is fixed; empty: nothing does.
        event: Whether the table has RFC-39's columns.
        partition: Columns that the table is partitioned by.
        adopted_at: Position of the rows that have none, because another writer left them in a
            table that was adopted; everything below it is in the table. Empty: there are none.
        schema: What the source's table looked like, as the batch's records tell it
            (``plan.evolution.SourceSchema``, JSON). Empty: nothing told yet.
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
        """Serialise for the commit's metadata."""
        return json.dumps({"lakeingest": 1, **asdict(self)}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str | None) -> CommitNote | None:
        """Read a commit's metadata; null when the commit is not one of ours."""
        try:
            fields: Mapping[str, Any] = json.loads(text or "")
        except ValueError:
            return None
        if not isinstance(fields, dict) or fields.get("lakeingest") != 1:
            return None
        known = {name: fields[name] for name in cls.__dataclass_fields__ if name in fields}
        lists = {name: tuple(known.get(name, ())) for name in ("key", "partition")}
        return cls(**{**known, **lists})

    @property
    def fences(self) -> bool:
        """Whether the commit only shuts out older writers.

        Its progress is what its writer knew of; an older one may have committed just before.
        """
        return self.token % _TOKEN_BATCHES < _FENCES

    def same_progress(self, other: CommitNote) -> bool:
        """Tell whether two notes differ in nothing but who wrote them."""
        return replace(self, run=other.run, token=other.token) == other

    def fenced(self, writer: int, run: str, attempt: int) -> CommitNote:
        """Return the note of an empty commit that shuts out writers before ``writer``."""
        return replace(self, token=fence_token(writer, attempt), run=run)


@dataclass(frozen=True)
class Changeset:
    """The merge payloads of one table and batch.

    Attributes:
        frame: The table's columns, RFC-39's where it has them, the metadata columns and
            ``FIRST_OP``; one row per key. Not held: a sink that reads it more than once
            holds it.
        columns: Source columns in the order of the source table.
        key: Names of the key columns.
        fillable: Columns that can be unavailable.
        floor: Position of the batch's newest truncate; empty: none.
        low: Lowest position in the batch.
        high: Highest position in the batch.
        rows: Number of payloads at most.
        inserts_only: Every key's first change is an insert, so none should exist yet.
        masked: Some payload leaves a column out.
        deletes: Some payload is a tombstone.
        size: Bytes of its rows' text at most; tells a sink which join is cheap.
        floor_event: RFC-39's columns of the rows that the truncate at ``floor`` sweeps away.
        partition: Columns that the table is partitioned by.
        forgiven: Columns that some event did not have because the source has them no more: one
            without any known value is NULL, and not missing.
        fills: Columns that no event had a word on before this batch, with the value that rows have
            which are in the table already.
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
    """What a sink knows of one of its tables.

    Attributes:
        version: Newest version of the table.
        note: Progress in the newest commit of ours.
    """

    version: int
    note: CommitNote


class Sink(Protocol):
    """A lake format."""

    def state(self, collection: str, since: int | None = None) -> TableState | None:
        """Return the table's state; null when it does not exist.

        Args:
            collection: The source table.
            since: Version up to which its commits are known; null: none is looked at.

        Raises:
            ConfigError: The path holds a table that is not this pipeline's.
            DataError: Somebody else changed its rows after ``since``.
        """

    def refuse_foreign_files(self, collection: str) -> None:
        """Check, before the first claim of a lake, that nobody else's files lie there.

        Raises:
            ConfigError: They do.
        """

    def apply(
        self, changeset: Changeset, note: CommitNote, previous: TableState | None
    ) -> TableState:
        """Land ``changeset`` in one commit that carries ``note``.

        Args:
            changeset: What to merge.
            note: Progress; floor, high and the like are carried over from ``previous``.
            previous: The table's state as this writer knows it; null creates the table.

        Raises:
            FencedError: A later writer has this table.
            DataError: The changeset does not fit the table; or somebody else changed its rows after
                ``previous``, which then is found behind the commit.
        """

    def fence(self, state: TableState, writer: int, run: str) -> TableState:
        """Commit the table's progress again under ``writer``, so that older writers are shut out.

        Returns:
            The state that holds now; its note may be ahead of ``state``'s if an older writer
            committed meanwhile.

        Raises:
            FencedError: Others keep writing to the table.
            DataError: Somebody else changed its rows after ``state``.
        """

    def read(self, collection: str, version: int) -> DataFrame:
        """Read the table as of ``version``, with tombstones and metadata columns."""

    def path(self, collection: str) -> str:
        """Return where the table lies."""
