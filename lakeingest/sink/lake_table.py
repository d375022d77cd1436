"""What a sink needs of one table of its format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

from pyspark.sql import DataFrame, SparkSession

from lakeingest.cast import typed_columns
from lakeingest.commit_note import CommitNote
from lakeingest.engine.commit import Commit
from lakeingest.errors import TransientError
from lakeingest.sink import progress
from lakeingest.sink.contract import TableState
from lakeingest.sink.foreign_changes import (
    foreign_change,
    foreign_change_error,
    late_commit,
    late_commit_error,
    since_known,
)


@dataclass(frozen=True)
class LakeTable(ABC):
    """One table, which need not exist.

    Attributes:
        kind: Display name of the format.
        spark: Session with the format's extension.
        path: The table's folder.
    """

    kind: ClassVar[str]

    spark: SparkSession
    path: str

    @abstractmethod
    def exists(self) -> bool:
        """Return whether the folder contains a table of the format, even one without a commit."""

    @abstractmethod
    def commits(self) -> Iterator[Commit]:
        """Yield the table's commits, newest first; none if there is no table."""

    @abstractmethod
    def read(self, version: int | None = None) -> DataFrame:
        """Read the table as of ``version``; None: its newest version."""

    @abstractmethod
    def append(self, rows: DataFrame, note: CommitNote) -> TableState:
        """Add rows in one commit that carries ``note``; create the table if there is none.

        Raises:
            FencedError: A later writer has claimed the table.
        """

    def append_wider(self, rows: DataFrame, note: CommitNote) -> TableState:
        """Add rows whose columns may have wider types than the table's; see ``append``."""
        return self.append(rows, note)

    @abstractmethod
    def has_lost_progress(self, newest: CommitNote | None) -> bool:
        """Return whether the table's log no longer has the commit with the progress.

        Args:
            newest: Note of the newest data commit in the log; without one, of the newest fence.
        """

    @abstractmethod
    def conflict(self, error: str, collection: str) -> str | None:
        """Return the message for a write that failed at another writer's commit, service or lock.

        Args:
            error: Class and text of the write's exception.
            collection: The source table.

        Returns:
            The message; None: the write failed for another reason.
        """

    @abstractmethod
    def repair(self, since: int, /) -> str:
        """Return the sentence that says how to revert another writer's changes.

        Args:
            since: Version before the changes.
        """

    def newest_note(self) -> tuple[int, CommitNote | None]:
        """Return the newest version and the progress; see ``progress.newest_note``."""
        return progress.newest_note(self.commits())

    @contextmanager
    def conflicts_explained(self, note: CommitNote) -> Iterator[None]:
        """Turn a format's exceptions for conflicts into errors of lakeingest.

        Args:
            note: Note of the commit in the block.

        Raises:
            FencedError: A later driver of the pipeline has claimed the table.
            TransientError: Maintenance or another writer changed the table.
        """
        try:
            yield
        except Exception as error:
            message = self.conflict(f"{type(error).__name__} {error}", note.collection)
            if message is None:
                raise
            progress.committed(note, *self.newest_note())
            raise TransientError(message) from error

    def append_nothing(self, note: CommitNote) -> TableState:
        """Commit ``note`` without any rows.

        Raises:
            FencedError: A later writer has claimed the table.
        """
        # Rejected: ``read().limit(0)``. It would list the table's files, and read none.
        nothing = typed_columns(self.read().schema, {})
        return self.append(self.spark.range(0).select(*nothing), note)

    def refuse_foreign_change(self, collection: str, since: int, *, accepted: bool) -> bool:
        """Raise an error if another writer changed rows after a version.

        Args:
            collection: The source table.
            since: Version up to which the commits are known.
            accepted: Whether other writers may change rows.

        Returns:
            Whether another writer changed rows.

        Raises:
            DataError: Another writer changed rows and may not, or a driver committed late.
        """
        commits = [*since_known(self.commits(), since)]
        late = late_commit(commits)
        if late is not None:
            raise late_commit_error(collection, late, self.repair(since))
        commit = foreign_change(commits, since)
        if commit is not None and not accepted:
            raise foreign_change_error(collection, commit, since, self.repair(since))
        return commit is not None
