"""How far a table is, by the notes in its commits; the same for every format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from lakeingest.engine.commit import Commit
from lakeingest.errors import ConfigError, FencedError
from lakeingest.sink.contract import Changeset, CommitNote, TableState
from lakeingest.sink.foreign_changes import standing


def newest_note(found: Iterable[Commit]) -> tuple[int, CommitNote | None]:
    """Return the table's newest version and how far it is, with the newest run and token.

    Foreign commits on top (OPTIMIZE, VACUUM) are passed over. So are fences: only a commit of rows
    says how far the table is, for a fence may have been made by somebody who had read too little.
    Nor does what a restore took back, though its token counts.

    Args:
        found: The table's commits, newest first; read as far as needed.
    """
    version = -1
    newest: CommitNote | None = None

    def noted(commit: Commit) -> Commit:
        nonlocal version, newest
        version = max(version, commit.version)
        newest = newest or CommitNote.from_json(commit.metadata)
        return commit

    for commit in standing(map(noted, found)):
        note = CommitNote.from_json(commit.metadata)
        if note is not None and not note.fences:
            newest = newest or note
            return version, replace(note, run=newest.run, token=newest.token)
    # The log does not reach back to a commit of rows: what fences repeat is the best there is.
    return version, newest


def recalled(note: CommitNote | None, notes: Sequence[str]) -> CommitNote | None:
    """Return the progress that the ledger has of a table whose own log has lost it.

    Args:
        note: What the log has: that of a fence, with the newest run and token; or nothing.
        notes: Of the table's publications: the newest one, and the newest with a schema.
    """
    known = [found for found in map(CommitNote.from_json, notes) if found is not None]
    if not known:
        return note
    newest = replace(known[0], schema=known[0].schema or known[-1].schema)
    if note is None:
        return newest
    if note.batch > newest.batch:
        # The table is ahead of the ledger, so only the fence tells what is in it.
        return note
    return replace(newest, run=note.run, token=max(note.token, newest.token))


def carried(
    note: CommitNote, changeset: Changeset, previous: TableState | None, *, hard: bool
) -> CommitNote:
    """Return the note of a changeset's commit with what it takes over from the commit before.

    Args:
        note: Progress and identity.
        changeset: What the commit lands.
        previous: The table before it.
        hard: Whether a deleted row is removed, and its position kept in the side table.
    """
    old = previous.note if previous else None
    return replace(
        note,
        floor=max(changeset.floor, old.floor if old else ""),
        high=max(changeset.high, old.high if old else ""),
        partial_rows=changeset.masked or bool(old and old.partial_rows),
        tombstones=(hard and changeset.deletes) or bool(old and old.tombstones),
        key=changeset.key,
        partition=changeset.partition,
        adopted_at=old.adopted_at if old else "",
    )


def owned(
    note: CommitNote | None, pipeline: str, collection: str, path: str, kind: str
) -> CommitNote:
    """Return the note of a table, if the table is this pipeline's and of this collection.

    Args:
        note: Of its newest commit.
        pipeline: Name of the pipeline.
        collection: The source table whose changes it is to hold.
        path: Where the table lies.
        kind: The format's name, for people.

    Raises:
        ConfigError: It is another's, or nobody's.
    """
    if note is not None and note.pipeline == pipeline:
        if note.collection == collection:
            return note
        message = (
            f"The folder of table '{collection}', '{path}', holds table '{note.collection}'. It "
            f"was not touched. Set lakeingest.table.{collection}.path to another folder."
        )
        raise ConfigError(message)
    owner = "no lakeingest pipeline" if note is None else f"pipeline '{note.pipeline}'"
    message = (
        f"The target '{PurePosixPath(path).name}' under lakeingest.target.path already holds a "
        f"{kind} table that belongs to {owner}, not to '{pipeline}'. It was not touched. Choose "
        "another lakeingest.target.path or move the table away."
    )
    if note is None and kind == "Hudi":
        message += (
            " If Hudi Streamer wrote it and it is to be gone on with, set "
            "lakeingest.table.<table>.adopt=hudi-streamer."
        )
    raise ConfigError(message)


def overtaken(note: CommitNote) -> FencedError:
    """Return the error of a writer that finds a later one's token in the log."""
    return FencedError(
        f"Table '{note.collection}' belongs to a later run of pipeline '{note.pipeline}' now; "
        "this run stopped before it published anything more."
    )


def created_by_another(collection: str) -> FencedError:
    """Return the error of a writer whose new table is there already."""
    return FencedError(
        f"Another run created table '{collection}' at the same time. Nothing of this batch was "
        "published; run again."
    )
