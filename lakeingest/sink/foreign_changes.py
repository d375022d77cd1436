"""Find commits in which another writer changed the rows of a lakeingest table.

A sink that only merges does not notice another writer's restore, UPDATE or append, and the rows
never equal the source's again. So a sink checks the commits after the newest known one before each
write of a table, and checks them again after the write. Maintenance is allowed: the log's actions,
and not a list of names, show that a commit changes no row.

A *late* commit is one of lakeingest: of a driver that stood still while a later one took the lake
over and wrote the table. Hudi's timeline accepts it. Its rows were merged without the later
driver's, and its note stores outdated progress, so it is refused whatever the settings say. Its
token shows it: a later driver's is higher.

Rejected: to revert the change automatically. Its author may have intended it, and a lake that
repairs itself hides it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lakeingest.commit_note import CommitNote, is_maintenance
from lakeingest.engine.commit import Commit
from lakeingest.errors import DataError, load_anew


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


def since_known(commits: Iterable[Commit], since: int) -> Iterator[Commit]:
    """Yield the commits after ``since``, and older ones down to the newest with rows of lakeingest.

    Args:
        commits: The table's commits, newest first; read as far as needed.
        since: Version up to which the commits are known.
    """
    for commit in without_reverted(commits):
        yield commit
        if commit.version <= since and CommitNote.of_rows(commit.metadata):
            return


def late_commit(commits: Iterable[Commit]) -> Commit | None:
    """Return the newest late commit; None: there is none.

    A driver that commits behind a later one's fence alone has missed no rows: the later driver
    repeats its fence with the progress of that commit.

    Args:
        commits: See ``since_known``.
    """
    lowest: tuple[Commit, CommitNote] | None = None
    for commit in commits:
        note = CommitNote.of_rows(commit.metadata)
        if note is None:
            continue
        if lowest is None or note.token < lowest[1].token:
            lowest = commit, note
        # A run that tries a batch again may begin with a lower token than its last one.
        elif note.token > lowest[1].token and note.run != lowest[1].run:
            return lowest[0]
    return None


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


def late_commit_error(collection: str, commit: Commit, repair: str) -> DataError:
    """Return the error of a table with a late commit.

    Args:
        collection: The source table.
        commit: The late commit.
        repair: Sentence that says how to revert it.
    """
    return DataError(
        f"A driver that had been replaced by a later one woke up and wrote table '{collection}': "
        f"{commit.operation or 'a write'} at version {commit.version}. It did not know the rows of "
        "the later driver, so rows may be older than the source's. Nothing of this batch was "
        f"published. {repair} If that is not possible, {load_anew(collection)}."
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
