"""Commits by which somebody else changed the rows of a table of ours.

A restore, an UPDATE or an append of others goes unnoticed in a table that is only merged into: the
rows never equal the source's again. So the commits behind the newest one that is known are looked
at wherever a table is about to be written, and those behind it once it was. Maintenance passes:
what changes no row is told by the log's actions, not by a list of names.

Rejected: to take the change back ourselves. Whoever made it may have meant it, and a lake that
repairs itself hides it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lakeingest.engine.commit import Commit
from lakeingest.errors import DataError
from lakeingest.sink.contract import CommitNote


def standing(found: Iterable[Commit]) -> Iterator[Commit]:
    """Yield the commits that a table stands on, newest first: not those that a restore took back.

    Args:
        found: The table's commits, newest first.
    """
    top: int | None = None
    for commit in found:
        if top is None or commit.version <= top:
            yield commit
            top = commit.restored if commit.restored is not None else top


def foreign_change(found: Iterable[Commit], since: int) -> Commit | None:
    """Return the newest commit behind ``since`` by which somebody else changed rows.

    Commits that log retention has removed cannot be told.

    Args:
        found: The table's commits, newest first; read as far as needed.
        since: Version up to which the commits are known.
    """
    for commit in standing(found):
        if commit.version <= since:
            return None
        if CommitNote.from_json(commit.metadata) is not None:
            continue
        back = commit.restored
        if back < since if back is not None else commit.changes_rows:
            return commit
    return None


def refuse_foreign_change(
    collection: str, found: Iterable[Commit], since: int, repair: str
) -> None:
    """Stop where somebody else changed the table's rows.

    Args:
        collection: The source table.
        found: The table's commits, newest first; read as far as needed.
        since: Version up to which the commits are known.
        repair: What takes the change back, as a sentence.

    Raises:
        DataError: Somebody did.
    """
    commit = foreign_change(found, since)
    if commit is None:
        return
    message = (
        f"Another writer changed the rows of table '{collection}': {commit.operation or 'a write'} "
        f"at version {commit.version}, after version {since} of lakeingest. They may not equal the "
        f"source's any more. Nothing of this batch was published. {repair} To keep the change, set "
        "lakeingest.foreign.changes=accept."
    )
    raise DataError(message)
