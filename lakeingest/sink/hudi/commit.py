"""One Hudi commit that carries a note, and the proof that it is ours.

Hudi's timeline has no compare-and-set: it takes the commit of a driver that was stopped for an hour
between its look at the newest token and its write. So tokens are looked at twice. Before the write,
which finds every driver that is late by more than a moment; and after it, where of all commits
since the state that the writer knew each must be its own. What is found then is found before
anything is published, and the ledger, which decides what a reader sees, can be fenced.
Hudi's locks are no such proof either: two writers that wait for each other both commit (measured).
They are the user's to set (``hoodie.write.lock.*``), against table services elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import PurePosixPath

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakeingest.engine.commit import Commit
from lakeingest.engine.hudi_streamer import table_properties, with_positions
from lakeingest.engine.hudi_table import commits, is_hudi_table, restored_after, rows_of
from lakeingest.errors import ConfigError, DataError, FencedError, TransientError
from lakeingest.frame_schemas import MetadataColumns
from lakeingest.sink import progress
from lakeingest.sink.contract import CommitNote, TableState
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
    """One table.

    Attributes:
        spark: Session with Hudi's extension.
        path: Its folder.
        names: Names of the metadata columns.
        settings: How it is kept.
        hard: Whether a deleted row is dropped from its files.
        last: Those of its columns that come behind all others.
        adopted_at: Position of the rows that another writer left; empty: there are none.
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
        """Return the newest version and how far the table is; nulls where there is no commit.

        A table that was made and killed before its first commit has none.
        """
        if not is_hudi_table(self.spark, self.path):
            return None, None
        version, note = progress.newest_note(commits(self.spark, self.path))
        return (None, None) if version < 0 else (version, note)

    def refuse_streamed(self, collection: str) -> None:
        """Stop where Hudi Streamer wrote to the table after us.

        Raises:
            ConfigError: It did.
        """
        found = commits(self.spark, self.path)
        refuse_streamed(collection, takewhile(lambda commit: not commit.metadata, found))

    def refuse_foreign_change(self, collection: str, since: int) -> None:
        """Stop where somebody else changed rows after a version.

        Raises:
            DataError: Somebody did.
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
        """Tell whether Hudi drops rows under our mark of a delete, as it was told at first."""
        return table_properties(self.spark, self.path).get(_MARK) == self.names.deleted

    def read(self, version: int | None) -> DataFrame:
        """Read the table as of a version, or its head, without the columns that are Hudi's."""
        names = self.names
        frame = rows_of(self.spark, self.path, version, self.last, names.record_key)
        if not self.adopted_at:
            return frame
        return with_positions(frame, names.position, names.deleted, self.adopted_at)

    def write_nothing(self, note: CommitNote) -> TableState:
        """Commit ``note`` alone.

        Raises:
            FencedError: A later writer has the table.
        """
        schema = self.read(None).schema
        nothing = [F.lit(None).cast(item.dataType).alias(item.name) for item in schema]
        version, found = self.newest_note()
        previous = TableState(version, found) if version is not None and found else None
        return self.write(self.spark.range(0).select(*nothing), note, previous)

    def write(self, rows: DataFrame, note: CommitNote, previous: TableState | None) -> TableState:
        """Upsert rows in one commit that carries ``note``.

        Args:
            rows: Have the table's columns, all of them.
            note: Goes with the commit.
            previous: The table's state as far as it is known.

        Raises:
            FencedError: A later writer has the table, or committed meanwhile.
            ConfigError: The table is without a commit, and was to be another one.
            TransientError: What would be published could not be read, see ``hudi_unfinished``; or
                its files are to be clustered.
        """
        version, found = self.newest_note()
        if version is not None and found is not None and found.token >= note.token:
            if (found.run, found.token) == (note.run, note.token):
                return TableState(version, found)
            raise progress.overtaken(note)
        prepared, options = self._as_adopted(rows) if note.adopted_at else self._as_ours(rows, note)
        note = replace(note, layout=layout(options))
        refuse_other_layout(note.collection, found.layout if found else "", note.layout)
        if is_left_unfinished(options) and is_hudi_table(self.spark, self.path):
            # A rival may roll the same commit back, and then one of the two finds it gone.
            with _rivals_fence(self, note):
                settle(self.spark, self.path, note.collection, options)
        options |= unfinished_clustering(options)
        options |= retention(self.settings.given, self._commits()) | commit_options(note)
        writer = prepared.write.format("hudi").options(**options)
        with _rivals_fence(self, note), _first_settings(note.collection, self.path, version):
            writer.mode("append").save(self.path)
        return self._landed(note, previous)

    def _as_ours(self, rows: DataFrame, note: CommitNote) -> tuple[DataFrame, dict[str, str]]:
        """Return rows and options for a table that is kept as we keep tables."""
        key = record_key(rows.schema, note.key, self.names.record_key)
        there = is_hudi_table(self.spark, self.path)
        made = table_properties(self.spark, self.path) if there else {}
        # A table keeps its first name when its folder gets another one.
        name = made.get(_NAME) or PurePosixPath(self.path).name
        options = write_options(
            self.settings, name, key, self.names, hard=self.hard, partition=note.partition
        )
        if not made:
            options |= at_first(beside_adopted=self.beside_adopted)
        return with_record_key(rows, note.key, key, options), options

    def _as_adopted(self, rows: DataFrame) -> tuple[DataFrame, dict[str, str]]:
        """Return rows and options for a table that is kept as its first writer kept it."""
        properties = table_properties(self.spark, self.path)
        return decided_by_lsn(rows, self.names), adopted_options(properties, self.settings.given)

    def _commits(self) -> Iterator[Commit]:
        if is_hudi_table(self.spark, self.path):
            yield from commits(self.spark, self.path)

    def _landed(self, note: CommitNote, previous: TableState | None) -> TableState:
        """Prove that the commit is in the timeline, and nobody else's since ``previous``."""
        since = previous.version if previous else -1
        found_now = commits(self.spark, self.path)
        new = list(takewhile(lambda commit: commit.version > since, found_now))
        if note.adopted_at:
            refuse_streamed(note.collection, new)
        notes = [(commit.version, CommitNote.from_json(commit.metadata)) for commit in new]
        for _, found in notes:
            if found is not None and found.run != note.run:
                message = (
                    f"Another writer committed to table '{note.collection}' at the same time. "
                    "Nothing of this batch was published; run again."
                )
                raise FencedError(message)
        if any(found is not None and found.token == note.token for _, found in notes):
            # The newest one may be a compaction, which changes no row.
            return TableState(notes[0][0], note)
        message = f"The commit to table '{note.collection}' is not in its timeline; run again."
        raise TransientError(message)


@contextmanager
def _rivals_fence(table: HudiTable, note: CommitNote) -> Iterator[None]:
    """Turn Hudi's conflicts, services and locks into ``TransientError``.

    Raises:
        FencedError: The conflict is with another driver of the pipeline.
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
            _, found = table.newest_note()
            if found is not None and found.token >= note.token and found.run != note.run:
                raise progress.overtaken(note) from error
            message = (
                f"Another writer (compaction, clustering, a rollback) committed to table "
                f"'{collection}' at the same time. Nothing of this batch was published; run again."
            )
            raise TransientError(message) from error
        raise


@contextmanager
def _first_settings(collection: str, path: str, version: int | None) -> Iterator[None]:
    """Turn Hudi's refusal of other settings into ``ConfigError``, where there is no commit yet.

    Hudi writes them down before it writes rows, so they outlive a first batch that failed, and
    would bar what was corrected thereupon.
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
