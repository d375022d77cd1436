"""Determine a table's progress from the notes in its commits; the same for every format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from lakeingest.commit_note import CommitNote
from lakeingest.engine.commit import Commit
from lakeingest.errors import ConfigError, FencedError
from lakeingest.sink.contract import Changeset, TableState
from lakeingest.sink.foreign_changes import without_reverted


def newest_note(commits: Iterable[Commit]) -> tuple[int, CommitNote | None]:
    """Return the table's newest version and its progress, with the highest token and its run.

    It skips newer commits of other writers (OPTIMIZE, VACUUM). It also skips fences: only a commit
    of rows shows the progress, because the writer of a fence may have read too little. It skips the
    progress of commits that a restore reverted, but their tokens count. The newest commit need not
    have the highest token: the ``ALTER TABLE`` of a driver that stood still may come late.

    Args:
        commits: The table's commits, newest first; read as far as needed.

    Returns:
        The newest version (-1: no commit), and the note; None: no commit has a note.
    """
    version = -1
    newest: CommitNote | None = None

    def record(commit: Commit) -> Commit:
        nonlocal version, newest
        version = max(version, commit.version)
        note = CommitNote.from_json(commit.metadata)
        if note is not None and (newest is None or note.token > newest.token):
            newest = note
        return commit

    for commit in without_reverted(map(record, commits)):
        note = CommitNote.of_rows(commit.metadata)
        if note is not None:
            newest = newest or note
            return version, replace(note, run=newest.run, token=newest.token)
    # No data commit remains in the log; use the progress that the newest fence copied.
    return version, newest


def note_from_ledger(note: CommitNote | None, notes: Sequence[str]) -> CommitNote | None:
    """Return a table's progress from the ledger when the table's own log has lost it.

    Args:
        note: Note of a fence in the log, with the newest run and token; None: the log has none.
        notes: Notes of the table's publications: the newest note, and the newest with a schema.

    Returns:
        The progress; None: neither log nor ledger has any.
    """
    ledger_notes = [parsed for parsed in map(CommitNote.from_json, notes) if parsed is not None]
    if not ledger_notes:
        return note
    newest = replace(ledger_notes[0], schema=ledger_notes[0].schema or ledger_notes[-1].schema)
    if note is None:
        return newest
    if note.batch > newest.batch:
        # The table is ahead of the ledger, so only the fence has the table's progress.
        return note
    return replace(newest, run=note.run, token=max(note.token, newest.token))


def carry_over(
    note: CommitNote, changeset: Changeset, previous: TableState | None, *, hard: bool
) -> CommitNote:
    """Return the note of a changeset's commit, completed from the table's previous note.

    Args:
        note: Progress and identity.
        changeset: Changeset that the commit writes.
        previous: The table's state before the commit; None: the commit creates the table.
        hard: Whether a delete removes the row and stores its position in the side table.
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


def require_ownership(
    note: CommitNote | None, pipeline: str, collection: str, path: str, kind: str
) -> CommitNote:
    """Return a table's note after a check that the table belongs to this pipeline and collection.

    Args:
        note: Note of the table's newest commit; None: no commit has a note.
        pipeline: Name of the pipeline.
        collection: The source table whose changes the table is for.
        path: Path of the table.
        kind: Display name of the format.

    Raises:
        ConfigError: The table belongs to another pipeline or collection, or to no pipeline.
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
            " If Hudi Streamer wrote it and this pipeline should continue it, set "
            "lakeingest.table.<table>.adopt=hudi-streamer."
        )
    raise ConfigError(message)


def committed(note: CommitNote, version: int, newest: CommitNote | None) -> TableState | None:
    """Return the table's state if its newest commit is the one of ``note``; None: it is older.

    Args:
        note: Note of this writer's commit.
        version: Newest version of the table.
        newest: Its progress; None: it has none.

    Raises:
        FencedError: A later writer has claimed the table.
    """
    if newest is None or newest.token < note.token:
        return None
    if (newest.run, newest.token) == (note.run, note.token):
        return TableState(version, newest)
    raise fenced_error(note)


def fenced_error(note: CommitNote) -> FencedError:
    """Return the error of a writer that finds a later writer's token in the log."""
    return FencedError(
        f"Table '{note.collection}' belongs to a later run of pipeline '{note.pipeline}' now; "
        "this run stopped before it published anything more."
    )


def already_created_error(collection: str) -> FencedError:
    """Return the error of a writer whose new table exists already."""
    return FencedError(
        f"Another run created table '{collection}' at the same time. Nothing of this batch was "
        "published; run again."
    )
