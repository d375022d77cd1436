"""What a commit of lakeingest says of itself: the note in its metadata, and the token that fences.

Sinks write notes, readers and the ledger's repair read them. Tokens of tables and of the ledger are
on one scale: a later writer's token is above every token of the writers before it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

_TOKEN_BATCHES = 1_000_000_000_000
"""Tokens of a writer: more than publications of 100 years, with one per transaction."""

_EARLIER_TOKEN_BATCHES = 1_000_000_000
"""Tokens of a writer of an earlier version, whose fences have no mark but their token."""

_FENCES = 10
_MAINTENANCE = "lakeingest-maintenance"


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


def claim_token(writer: int) -> int:
    """Return the token of the ledger entry by which a writer claims the lake: its lowest one."""
    return writer * _TOKEN_BATCHES


def release_token(writer: int) -> int:
    """Return the token of the ledger entry by which a writer releases the lake: its highest one."""
    return (writer + 1) * _TOKEN_BATCHES - 1


def maintenance_note(pipeline: str) -> str:
    """Return the metadata of a commit that changes no row that readers of the lake see.

    It is no ``CommitNote``: maintenance makes no progress, and neither fences nor is fenced.
    """
    return json.dumps({_MAINTENANCE: 1, "pipeline": pipeline}, sort_keys=True)


def is_maintenance(text: str | None) -> bool:
    """Return whether a commit's metadata is a ``maintenance_note``."""
    return _fields(text).get(_MAINTENANCE) == 1


def _fields(text: str | None) -> Mapping[str, Any]:
    """Return the fields of a JSON object; none if the text is no such object."""
    try:
        fields = json.loads(text or "")
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}


@dataclass(frozen=True, kw_only=True)
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
        fences: Whether the commit only fences older writers, or changes the schema before a batch.
            It copies the progress that its writer had read; another one may have committed since.
        transaction: Id of the source transaction, if the commit has no other one and each
            transaction is to be a version of its own; else empty.
        committed_ms: Time of this transaction in the source (milliseconds); 0: unknown.
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
    fences: bool = False
    transaction: str = ""
    committed_ms: int = 0
    schema: str = ""

    def to_json(self) -> str:
        """Serialise the note for the commit's metadata."""
        return json.dumps({"lakeingest": 1, **asdict(self)}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str | None) -> CommitNote | None:
        """Parse a commit's metadata; return None when lakeingest did not write the commit."""
        fields = _fields(text)
        if fields.get("lakeingest") != 1:
            return None
        values = {name: fields[name] for name in cls.__dataclass_fields__ if name in fields}
        lists = {name: tuple(values.get(name, ())) for name in ("key", "partition")}
        values.setdefault("fences", fields["token"] % _EARLIER_TOKEN_BATCHES < _FENCES)
        return cls(**{**values, **lists})

    @classmethod
    def of_rows(cls, text: str | None) -> CommitNote | None:
        """Parse the metadata of a commit by which lakeingest wrote rows; None for any other one."""
        note = cls.from_json(text)
        return None if note is None or note.fences else note

    def same_progress(self, other: CommitNote) -> bool:
        """Return whether two notes differ in their writer and what it is for at most."""
        return replace(self, run=other.run, token=other.token, fences=other.fences) == other

    def not_before(self, other: CommitNote) -> CommitNote:
        """Return the note with the progress of a table that a killed run has left further on.

        Such a table stays ahead of the ledger until all that it holds is published.
        """
        last = other if other.end_offset > self.end_offset else self
        return replace(
            self,
            batch=max(self.batch, other.batch),
            end_offset=last.end_offset,
            end_position=max(self.end_position, other.end_position),
            transaction=last.transaction,
            committed_ms=last.committed_ms,
        )

    def fenced(self, writer: int, run: str, attempt: int) -> CommitNote:
        """Return the note of an empty commit that fences the writers before ``writer``."""
        return replace(self, token=fence_token(writer, attempt), run=run, fences=True)
