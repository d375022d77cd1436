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

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakeingest.commit_note import CommitNote
from lakeingest.engine.commit import Commit
from lakeingest.engine.hudi_streamer import table_properties, with_positions
from lakeingest.engine.hudi_table import commits, is_hudi_table, restored_after, rows_of
from lakeingest.errors import ConfigError, DataError, FencedError, TransientError
from lakeingest.frame_schemas import MetadataColumns
from lakeingest.sink import progress
from lakeingest.sink.contract import TableState
from lakeingest.sink.foreign_changes import refuse_foreign_change
from lakeingest.sink.hudi.adopted_table import adopted_options, decided_by_lsn, refuse_streamed
from lakeingest.sink.hudi.options import HudiSettings, at_first, commit_options, write_options
from lakeingest.sink.hudi.record_key import record_key, with_record_key
from lakeingest.sink.hudi.table_services import (
    layout,
    refuse_other_layout,
    retention,
    unfinished_clustering,
)
from lakeingest.sink.hudi.unfinished_commits import is_left_unfinished, settle

_CONCURRENT = (
    "HoodieWriteConflictException",
    "HoodieRollbackException",
    "requested does not exist",
)
_MARK = "hoodie.record.merge.property.hoodie.payload.delete.field"
_LOCKED = "HoodieLockException"
_CONFLICT = "Config conflict"
_NAME = "hoodie.table.name"
_CLUSTERED = "HoodieClusteringUpdateException"


@dataclass(frozen=True)
class HudiTable:
    """One Hudi table.

    Attributes:
        spark: Session with Hudi's extension.
        path: The table's folder.
        names: Names of the metadata columns.
        settings: Table type and options.
        hard: Whether Hudi drops a deleted row from the table's files.
        last: Columns that come after all others.
        adopted_at: Position of rows that another writer wrote without one; empty: no such rows.
        beside_adopted: Whether the pipeline has a table with such rows.
    """

    spark: SparkSession
    path: str
    names: MetadataColumns
    settings: HudiSettings
    hard: bool
    last: tuple[str, ...]
    adopted_at: str = ""
    beside_adopted: bool = False

    def newest_note(self) -> tuple[int | None, CommitNote | None]:
        """Return the newest version and the table's progress; None for both: there is no commit.

        A table has no commit if the run that created it was killed before the first commit.
        """
        if not is_hudi_table(self.spark, self.path):
            return None, None
        version, note = progress.newest_note(commits(self.spark, self.path))
        return (None, None) if version < 0 else (version, note)

    def refuse_streamed(self, collection: str) -> None:
        """Raise an error if Hudi Streamer wrote to the table after lakeingest.

        Args:
            collection: The source table.

        Raises:
            ConfigError: Hudi Streamer did.
        """
        newest_first = commits(self.spark, self.path)
        refuse_streamed(collection, takewhile(lambda commit: not commit.metadata, newest_first))

    def refuse_foreign_change(self, collection: str, since: int) -> None:
        """Raise an error if another writer changed rows after a version.

        Args:
            collection: The source table.
            since: The version.

        Raises:
            DataError: Another writer changed rows, or restored the table to an earlier commit.
        """
        if restored_after(self.spark, self.path, since):
            message = (
                f"Another writer restored Hudi table '{collection}' to an earlier commit after "
                f"version {since} of lakeingest, so changes are missing from it. Nothing of this "
                "batch was published. Load the lake anew (another lakeingest.target.path), or set "
                "lakeingest.foreign.changes=accept to go on without them."
            )
            raise DataError(message)
        repair = (
            "To take it back while it is the table's newest commit: Hudi's rollback of that "
            "instant (CALL rollback_to_instant); then run again."
        )
        refuse_foreign_change(collection, commits(self.spark, self.path), since, repair)

    def removes_deleted(self) -> bool:
        """Return whether Hudi drops the rows that lakeingest marks as deleted.

        Hudi stores this setting in the table when the table is created.
        """
        return table_properties(self.spark, self.path).get(_MARK) == self.names.deleted

    def read(self, version: int | None) -> DataFrame:
        """Read the table without Hudi's columns, as of a version; None: the newest version."""
        names = self.names
        frame = rows_of(self.spark, self.path, version, self.last, names.record_key)
        if not self.adopted_at:
            return frame
        return with_positions(frame, names.position, names.deleted, self.adopted_at)

    def write_nothing(self, note: CommitNote) -> TableState:
        """Commit ``note`` without any rows.

        Raises:
            FencedError: A later writer has claimed the table.
        """
        schema = self.read(None).schema
        nothing = [F.lit(None).cast(item.dataType).alias(item.name) for item in schema]
        version, newest = self.newest_note()
        previous = TableState(version, newest) if version is not None and newest else None
        return self.write(self.spark.range(0).select(*nothing), note, previous)

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
        if version is not None and newest is not None and newest.token >= note.token:
            if (newest.run, newest.token) == (note.run, note.token):
                return TableState(version, newest)
            raise progress.overtaken(note)
        frame, options = self._as_adopted(rows) if note.adopted_at else self._as_ours(rows, note)
        note = replace(note, layout=layout(options))
        refuse_other_layout(note.collection, newest.layout if newest else "", note.layout)
        if is_left_unfinished(options) and is_hudi_table(self.spark, self.path):
            # A rival may roll back the same commit at the same time. Then one of the two fails.
            with _rivals_fence(self, note):
                settle(self.spark, self.path, note.collection, options)
        options |= unfinished_clustering(options)
        options |= retention(self.settings.given, self._commits()) | commit_options(note)
        writer = frame.write.format("hudi").options(**options)
        with _rivals_fence(self, note), _first_settings(note.collection, self.path, version):
            writer.mode("append").save(self.path)
        return self._proven_state(note, previous)

    def _as_ours(self, rows: DataFrame, note: CommitNote) -> tuple[DataFrame, dict[str, str]]:
        """Return rows and options for a table that lakeingest created."""
        key = record_key(rows.schema, note.key, self.names.record_key)
        exists = is_hudi_table(self.spark, self.path)
        properties = table_properties(self.spark, self.path) if exists else {}
        # A table keeps its first name when a user renames its folder.
        name = properties.get(_NAME) or PurePosixPath(self.path).name
        options = write_options(
            self.settings, name, key, self.names, hard=self.hard, partition=note.partition
        )
        if not properties:
            options |= at_first(beside_adopted=self.beside_adopted)
        return with_record_key(rows, note.key, key, options), options

    def _as_adopted(self, rows: DataFrame) -> tuple[DataFrame, dict[str, str]]:
        """Return rows and options for an adopted table, with its first writer's settings."""
        properties = table_properties(self.spark, self.path)
        return decided_by_lsn(rows, self.names), adopted_options(properties, self.settings.given)

    def _commits(self) -> Iterator[Commit]:
        if is_hudi_table(self.spark, self.path):
            yield from commits(self.spark, self.path)

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
        newest_first = commits(self.spark, self.path)
        new = list(takewhile(lambda commit: commit.version > since, newest_first))
        if note.adopted_at:
            refuse_streamed(note.collection, new)
        notes = [(commit.version, CommitNote.from_json(commit.metadata)) for commit in new]
        for _, other_note in notes:
            if other_note is not None and other_note.run != note.run:
                message = (
                    f"Another writer committed to table '{note.collection}' at the same time. "
                    "Nothing of this batch was published; run again."
                )
                raise FencedError(message)
        if any(
            other_note is not None and other_note.token == note.token for _, other_note in notes
        ):
            # The newest commit may be a compaction, which changes no row.
            return TableState(notes[0][0], note)
        message = f"The commit to table '{note.collection}' is not in its timeline; run again."
        raise TransientError(message)


@contextmanager
def _rivals_fence(table: HudiTable, note: CommitNote) -> Iterator[None]:
    """Turn Hudi's errors of conflicts, table services and locks into ``TransientError``.

    Args:
        table: The table.
        note: Note of the commit in the block.

    Raises:
        FencedError: The conflict is with another driver of the pipeline.
        TransientError: The conflict is with another writer or a table service.
    """
    collection = note.collection
    try:
        yield
    except Exception as error:
        text = f"{type(error).__name__} {error}"
        if _CLUSTERED in text:
            message = (
                f"Files of Hudi table '{collection}' are planned to be clustered, and Hudi accepts "
                "no change of them until that is done. Nothing of this batch was published. Have "
                "it done (CALL run_clustering, or the job that does it), and run again."
            )
            raise TransientError(message) from error
        if _LOCKED in text:
            message = (
                f"The lock of Hudi table '{collection}' could not be had. Nothing of this batch "
                "was published. Another writer holds it, or one that was killed did: run again, or "
                "have it taken from a dead one (of a file system's lock, "
                "hoodie.write.lock.filesystem.expire in minutes)."
            )
            raise TransientError(message) from error
        if any(name in text for name in _CONCURRENT):
            _, newest = table.newest_note()
            if newest is not None and newest.token >= note.token and newest.run != note.run:
                raise progress.overtaken(note) from error
            message = (
                f"Another writer (compaction, clustering, a rollback) committed to table "
                f"'{collection}' at the same time. Nothing of this batch was published; run again."
            )
            raise TransientError(message) from error
        raise


@contextmanager
def _first_settings(collection: str, path: str, version: int | None) -> Iterator[None]:
    """Turn Hudi's refusal of changed settings into ``ConfigError``, before the first commit.

    Hudi stores the settings before it writes rows. So they stay after a first batch that failed,
    and Hudi refuses the corrected settings.

    Args:
        collection: The source table.
        path: The table's folder.
        version: The table's newest version; None: there is no commit yet.

    Raises:
        ConfigError: The folder has a table with other settings and without a commit.
    """
    try:
        yield
    except Exception as error:
        if version is not None or _CONFLICT not in str(error):
            raise
        message = (
            f"The folder '{path}' was made for Hudi table '{collection}' with other settings (its "
            "key, partition or key generator), by a run that ended before the table's first "
            "commit. Nothing was written. Delete all that is in the folder (but _lakeingest, which "
            "is the lake's), and run again."
        )
        raise ConfigError(message) from error
