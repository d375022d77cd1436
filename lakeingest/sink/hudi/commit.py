"""Make one Hudi commit that carries a note, and prove from the timeline that it happened.

Hudi's timeline has no compare-and-set: it accepts the commit of a driver that paused for an hour
between its check of the newest token and its write. So the sink checks the tokens twice. The check
before the write finds every driver that is late by more than a moment. The check after the write
requires that no other run has committed since the state that the writer knew. It runs before
anything is published, and the ledger, which decides what a reader sees, can be fenced.

Rejected: Hudi's locks as the proof. Two writers that wait for each other both commit (measured).
The user sets locks (``hoodie.write.lock.*``) against table services in other processes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import PurePosixPath

from pyspark.sql import DataFrame

from lakeingest.commit_note import CommitNote
from lakeingest.engine.commit import Commit
from lakeingest.engine.hudi.client import clean, compact
from lakeingest.engine.hudi.streamer import table_properties, with_positions
from lakeingest.engine.hudi.table import commits, is_hudi_table, restored_after, rows_of
from lakeingest.errors import ConfigError, DataError, FencedError, TransientError
from lakeingest.sink.contract import TableState
from lakeingest.sink.hudi.adopted_table import (
    adopted_options,
    refuse_streamer_commits,
    with_lsn_order,
)
from lakeingest.sink.hudi.options import (
    HudiSettings,
    TableType,
    commit_options,
    creation_options,
    write_options,
)
from lakeingest.sink.hudi.record_key import record_key, with_record_key
from lakeingest.sink.hudi.table_services import (
    layout,
    refuse_other_layout,
    retention,
    retention_down_to,
    unfinished_clustering,
)
from lakeingest.sink.hudi.unfinished_commits import is_alone, leaves_unfinished, settle
from lakeingest.sink.lake_table import LakeTable
from lakeingest.sink.progress import committed
from lakeingest.sink.settings import SinkSettings

_CONCURRENT = (
    "HoodieWriteConflictException",
    "HoodieRollbackException",
    "requested does not exist",
)
_MARK = "hoodie.record.merge.property.hoodie.payload.delete.field"
_LOCKED = "HoodieLockException"
_CONFLICT = "Config conflict"
_NAME = "hoodie.table.name"
_TYPE = "hoodie.table.type"
_CLUSTERED = "HoodieClusteringUpdateException"


@dataclass(frozen=True)
class HudiTable(LakeTable):
    """One Hudi table.

    Attributes:
        settings: Settings of the pipeline; with ``hard``, Hudi drops a deleted row from the files.
        hudi: Table type and options.
        adopted_at: Position of rows that another writer wrote without one; empty: no such rows.
        beside_adopted: Whether the pipeline has a table with such rows.
    """

    kind = "Hudi"

    settings: SinkSettings
    hudi: HudiSettings
    adopted_at: str = ""
    beside_adopted: bool = False

    def exists(self) -> bool:
        """Return whether the folder contains a Hudi table.

        A table has no commit if the run that created it was killed before the first commit.
        """
        return is_hudi_table(self.spark, self.path)

    def commits(self) -> Iterator[Commit]:
        """Yield the table's commits, newest first; none if there is no table."""
        return commits(self.spark, self.path)

    def has_lost_progress(self, newest: CommitNote | None) -> bool:
        """Return whether the timeline no longer has the commit with the progress.

        If it has only fences, Hudi has archived the data commits. If it has no note of lakeingest
        at all, the table may belong to another writer.
        """
        return newest is not None and newest.fences

    def conflict(self, error: str, collection: str) -> str | None:
        """Return the message for a write that met a commit, a service or a lock; None: no such."""
        if _CLUSTERED in error:
            return (
                f"Files of Hudi table '{collection}' are planned to be clustered, and Hudi accepts "
                "no change of them until that is done. Nothing of this batch was published. Have "
                "it done (CALL run_clustering, or the job that does it), and run again."
            )
        if _LOCKED in error:
            return (
                f"The lock of Hudi table '{collection}' could not be had. Nothing of this batch "
                "was published. Another writer holds it, or one that was killed did: run again, or "
                "have it taken from a dead one (of a file system's lock, "
                "hoodie.write.lock.filesystem.expire in minutes)."
            )
        if any(name in error for name in _CONCURRENT):
            return (
                f"Another writer (compaction, clustering, a rollback) committed to table "
                f"'{collection}' at the same time. Nothing of this batch was published; run again."
            )
        return None

    def repair(self, _since: int, /) -> str:
        """Return the sentence that says how to revert another writer's changes."""
        return (
            "To take it back while it is the table's newest commit: Hudi's rollback of that "
            "instant (CALL rollback_to_instant); then run again."
        )

    def refuse_streamer_commits(self, collection: str) -> None:
        """Raise an error if Hudi Streamer wrote to the table after lakeingest.

        Args:
            collection: The source table.

        Raises:
            ConfigError: Hudi Streamer did.
        """
        after_ours = takewhile(lambda commit: not commit.metadata, self.commits())
        refuse_streamer_commits(collection, after_ours)

    def refuse_foreign_change(self, collection: str, since: int, *, accepted: bool) -> bool:
        """Raise an error if another writer changed rows after a version; see ``LakeTable``.

        Raises:
            DataError: Another writer changed rows, or restored the table to an earlier commit.
        """
        if not accepted and restored_after(self.spark, self.path, since):
            message = (
                f"Another writer restored Hudi table '{collection}' to an earlier commit after "
                f"version {since} of lakeingest, so changes are missing from it. Nothing of this "
                "batch was published. Load the lake anew (another lakeingest.target.path), or set "
                "lakeingest.foreign.changes=accept to go on without them."
            )
            raise DataError(message)
        return super().refuse_foreign_change(collection, since, accepted=accepted)

    def removes_deleted(self) -> bool:
        """Return whether Hudi drops the rows that lakeingest marks as deleted.

        Hudi stores this setting in the table when the table is created.
        """
        return table_properties(self.spark, self.path).get(_MARK) == self.settings.names.deleted

    def read(self, version: int | None = None) -> DataFrame:
        """Read the table without Hudi's columns, as of a version; None: the newest version."""
        names = self.settings.names
        frame = rows_of(self.spark, self.path, version, names)
        if not self.adopted_at:
            return frame
        return with_positions(frame, names.position, names.deleted, self.adopted_at)

    def append(self, rows: DataFrame, note: CommitNote) -> TableState:
        """Add rows in one commit that carries ``note``; see ``write``."""
        version, newest = self.newest_note()
        return self.write(rows, note, TableState(version, newest) if newest else None)

    def write(self, rows: DataFrame, note: CommitNote, previous: TableState | None) -> TableState:
        """Upsert rows in one commit that carries ``note``.

        Args:
            rows: Rows with all columns of the table.
            note: Note of the commit.
            previous: The table's state that this writer knows; None: the commit creates the table.

        Returns:
            The table's state with the commit.

        Raises:
            FencedError: A later writer has claimed the table, or another run committed meanwhile.
            ConfigError: The folder has a table without a commit that was created with other
                settings; or the table's index or folder names are others than the configured ones.
            TransientError: Readers could not read the commit (``hudi_unfinished``); or a clustering
                is planned for the table's files; or a conflict, a lock or an absent commit stopped
                the write.
        """
        version, newest = self.newest_note()
        state = committed(note, version, newest)
        if state is not None:
            return state
        frame, options = self._as_adopted(rows) if note.adopted_at else self._as_ours(rows, note)
        note = replace(note, layout=layout(options))
        refuse_other_layout(note.collection, newest.layout if newest else "", note.layout)
        if leaves_unfinished(options) and self.exists():
            # A rival may roll back the same commit at the same time. Then one of the two fails.
            with self.conflicts_explained(note):
                settle(self.spark, self.path, note.collection, options)
        options |= unfinished_clustering(options)
        options |= retention(self.hudi.user_options, self.commits()) | commit_options(note)
        writer = frame.write.format("hudi").options(**options)
        with self.conflicts_explained(note), _first_settings(note.collection, self.path, version):
            writer.mode("append").save(self.path)
        return self._proven_state(note, previous)

    def compact(self, note: CommitNote) -> None:
        """Compact the table's log files, if it has any; ``note`` is its progress."""
        if table_properties(self.spark, self.path).get(_TYPE) == TableType.MERGE_ON_READ.value:
            options = self._service_options(note)
            compact(self.spark, self.path, options, alone=is_alone(options))

    def clean(self, note: CommitNote, oldest: int) -> None:
        """Remove files and commits that no version from ``oldest`` on needs."""
        options = retention_down_to(oldest, self.commits())
        clean(self.spark, self.path, {**self._service_options(note), **options})

    def _service_options(self, note: CommitNote) -> dict[str, str]:
        rows = self.read()
        _, options = self._as_adopted(rows) if note.adopted_at else self._as_ours(rows, note)
        return options

    def _as_ours(self, rows: DataFrame, note: CommitNote) -> tuple[DataFrame, dict[str, str]]:
        """Return rows and options for a table that lakeingest created."""
        names = self.settings.names
        key = record_key(rows.schema, note.key, names.record_key)
        properties = table_properties(self.spark, self.path) if self.exists() else {}
        # A table keeps its first name when a user renames its folder.
        name = properties.get(_NAME) or PurePosixPath(self.path).name
        options = write_options(
            self.hudi, name, key, names, hard=self.settings.hard, partition=note.partition
        )
        if not properties:
            options |= creation_options(beside_adopted=self.beside_adopted)
        return with_record_key(rows, note.key, key, options), options

    def _as_adopted(self, rows: DataFrame) -> tuple[DataFrame, dict[str, str]]:
        """Return rows and options for an adopted table, with its first writer's settings."""
        properties = table_properties(self.spark, self.path)
        options = adopted_options(properties, self.hudi.user_options)
        return with_lsn_order(rows, self.settings.names), options

    def _proven_state(self, note: CommitNote, previous: TableState | None) -> TableState:
        """Prove that the commit is in the timeline and that no other run committed.

        Args:
            note: Note of the commit.
            previous: The table's state that this writer knew; commits after it are checked. None:
                all commits.

        Raises:
            FencedError: Another run committed after ``previous``.
            TransientError: The commit is not in the timeline.
            ConfigError: Hudi Streamer committed to the adopted table after ``previous``.
        """
        since = previous.version if previous else -1
        new = list(takewhile(lambda commit: commit.version > since, self.commits()))
        if note.adopted_at:
            refuse_streamer_commits(note.collection, new)
        parsed = (CommitNote.from_json(commit.metadata) for commit in new)
        notes = [other for other in parsed if other is not None]
        if any(other.run != note.run for other in notes):
            message = (
                f"Another writer committed to table '{note.collection}' at the same time. "
                "Nothing of this batch was published; run again."
            )
            raise FencedError(message)
        if any(other.token == note.token for other in notes):
            # The newest commit may be a compaction, which changes no row.
            return TableState(new[0].version, note)
        message = f"The commit to table '{note.collection}' is not in its timeline; run again."
        raise TransientError(message)


@contextmanager
def _first_settings(collection: str, path: str, version: int) -> Iterator[None]:
    """Turn Hudi's refusal of changed settings into ``ConfigError``, before the first commit.

    Hudi stores the settings before it writes rows. So they stay after a first batch that failed,
    and Hudi refuses the corrected settings.

    Args:
        collection: The source table.
        path: The table's folder.
        version: The table's newest version; -1: there is no commit yet.

    Raises:
        ConfigError: The folder has a table with other settings and without a commit.
    """
    try:
        yield
    except Exception as error:
        if version >= 0 or _CONFLICT not in str(error):
            raise
        message = (
            f"The folder '{path}' was made for Hudi table '{collection}' with other settings (its "
            "key, partition or key generator), by a run that ended before the table's first "
            "commit. Nothing was written. Delete all that is in the folder (but _lakeingest, which "
            "is the lake's), and run again."
        )
        raise ConfigError(message) from error
