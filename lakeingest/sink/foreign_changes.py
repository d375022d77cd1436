"""Find commits in which another writer changed the rows of a lakeingest table.

A sink that only merges does not notice another writer's restore, UPDATE or append, and the rows
never equal the source's again. So a sink checks the commits after the newest known one before each
write of a table, and checks them again after the write. Maintenance is allowed: the log's actions,
and not a list of names, show that a commit changes no row.

Rejected: to revert the change automatically. Its author may have intended it, and a lake that
repairs itself hides it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lakeingest.commit_note import CommitNote, is_maintenance
from lakeingest.engine.commit import Commit
from lakeingest.errors import DataError


def without_reverted(commits: Iterable[Commit]) -> Iterator[Commit]:
    """Yield the commits in a table's present state, newest first; skip those a restore reverted.

    Args:
        commits: The table's commits, newest first.
    """
    top: int | None = None
    for commit in commits:
        if top is None or commit.version <= top:
            yield commit
            top = commit.restored if commit.restored is not None else top


def foreign_change(commits: Iterable[Commit], since: int) -> Commit | None:
    """Return the newest commit after ``since`` in which another writer changed rows.

    Commits that log retention has removed cannot be checked.

    Args:
        commits: The table's commits, newest first; read as far as needed.
        since: Version up to which the commits are known.

    Returns:
        The commit; None: there is none.
    """
    for commit in without_reverted(commits):
        if commit.version <= since:
            return None
        own_note = CommitNote.from_json(commit.metadata) is not None
        if own_note or is_maintenance(commit.metadata):
            continue
        restored = commit.restored
        if restored < since if restored is not None else commit.changes_rows():
            return commit
    return None


def foreign_change_error(collection: str, commit: Commit, since: int, repair: str) -> DataError:
    """Return the error of a table whose rows another writer changed.

    Args:
        collection: The source table.
        commit: Commit of the other writer.
        since: Version up to which the commits are known.
        repair: Sentence that says how to revert the change.
    """
    return DataError(
        f"Another writer changed the rows of table '{collection}': {commit.operation or 'a write'} "
        f"at version {commit.version}, after version {since} of lakeingest. They may not equal the "
        f"source's any more. Nothing of this batch was published. {repair} To keep the change, set "
        "lakeingest.foreign.changes=accept."
    )


def no_position_error(collection: str, position: str) -> DataError:
    """Return the error of a table that has rows without a position.

    Args:
        collection: The source table.
        position: Name of the column with a row's position.
    """
    return DataError(
        f"Another writer inserted rows without {position} into table '{collection}'. They have no "
        "place in the order of the source's changes, so no change of their keys would be applied. "
        f"Nothing of this batch was published. Delete the rows whose {position} is NULL, insert "
        "those at the source that are to stay, and run again."
    )
