"""Make one Delta commit that carries a note, and prove from the log that it happened.

Delta silently skips a write when the table has a version of its ``txnAppId`` that is at least
``txnVersion``, and raises ``ConcurrentTransactionException`` when a rival commits under the same id
meanwhile. Both mean "fenced". So after every write, the sink reads back the newest commits: the
write happened only if its own note is among them.

A conflict with another commit, such as OPTIMIZE, fences nobody. The log decides: a token at least
as high as the write's own one means "fenced"; without such a token, the batch is tried again.

A MERGE takes these ids from session settings. The settings stay set and would make Delta skip the
next write. So each commit has its own temporary session (sessions share jars and cache). Engine
facts: Delta 3.3 ``DeltaCommand.hasBeenExecuted``, ``ConflictChecker``.

Small commits open Delta's transaction themselves where table and engine allow it
(``engine/delta/transaction.py``). There, the newest note in the log must be older than the commit's
note when the transaction begins, and a rival's later commit makes the transaction fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lakeingest.commit_note import CommitNote
from lakeingest.engine.commit import Commit
from lakeingest.engine.delta import log as delta_log
from lakeingest.engine.delta.files import DataFile
from lakeingest.engine.delta.local_disk import committing
from lakeingest.engine.delta.log_writer import LogBrokenError
from lakeingest.engine.delta.snapshot import cached_schema, cached_snapshot, rows_as_of
from lakeingest.engine.delta.transaction import DeltaTransaction
from lakeingest.engine.delta.versions import VersionsTransaction
from lakeingest.engine.own_session import own_session
from lakeingest.errors import DataError, TransientError
from lakeingest.sink.contract import TableState
from lakeingest.sink.lake_table import LakeTable
from lakeingest.sink.progress import committed, fenced_error

_APP = "lakeingest:"

_CONCURRENT = (
    "ConcurrentTransactionException",
    "ConcurrentAppendException",
    "ConcurrentDeleteReadException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentWriteException",
    "MetadataChangedException",
    "ProtocolChangedException",
    "DELTA_CONCURRENT",
    "DELTA_METADATA_CHANGED",
    "DELTA_PROTOCOL_CHANGED",
    "VersionTakenError",
    "VersionReplacedError",
)

FileChange = tuple[tuple[DataFile, ...], tuple[DataFile, ...]]
"""Data files that a commit adds to a table, and data files that it removes."""


@dataclass(frozen=True)
class DeltaLakeTable(LakeTable):
    """One Delta table. Only one thread at a time may write it.

    Attributes:
        direct: Whether small commits may use a ``DeltaTransaction``.
    """

    kind = "Delta"

    direct: bool

    def exists(self) -> bool:
        """Return whether the folder contains a Delta table."""
        return delta_log.is_delta_table(self.spark, self.path)

    def commits(self) -> Iterator[Commit]:
        """Yield the table's commits, newest first; none if there is no table."""
        return delta_log.commits(self.spark, self.path)

    def read(self, version: int | None = None) -> DataFrame:
        """Read the table as of ``version``; None: its newest version."""
        if version is None:
            return self.spark.read.format("delta").load(self.path)
        snapshot = cached_snapshot(self.spark, self.path, version)
        return rows_as_of(self.spark, self.path, version) if snapshot is None else snapshot

    def schema(self, version: int) -> StructType:
        """Return the table's schema as of ``version``."""
        schema = cached_schema(self.spark, self.path, version)
        return self.read(version).schema if schema is None else schema

    def has_lost_progress(self, newest: CommitNote | None) -> bool:
        """Return whether the table's log no longer has the commit with the progress."""
        if newest is not None and not newest.fences:
            return False
        # If the log still has its first commit, no commit is lost.
        return all(commit.version > 0 for commit in self.commits())

    def conflict(self, error: str, collection: str) -> str | None:
        """Return the message for a failed write that met another commit; None: it met none."""
        if not any(name in error for name in _CONCURRENT):
            return None
        return (
            f"Table '{collection}' was changed by another writer (OPTIMIZE, ALTER TABLE) while "
            "this batch was written. Nothing of it was published; run again, or run maintenance "
            "when the pipeline is idle."
        )

    def repair(self, since: int, /) -> str:
        """Return the sentence that says how to revert another writer's changes."""
        name = delta_log.sql_name(self.spark, self.path)
        return f"To take it back: RESTORE TABLE {name} TO VERSION AS OF {since}; then run again."

    def append(self, rows: DataFrame, note: CommitNote) -> TableState:
        """Add rows in one commit that carries ``note``; create the table if there is none.

        Raises:
            FencedError: A later writer has claimed the table.
            TransientError: See ``commit``.
        """
        return self.save(rows, note, "append")

    def append_wider(self, rows: DataFrame, note: CommitNote) -> TableState:
        """Add rows; where a type has become wider, rewrite the table with them in one commit.

        Delta appends no wider type, not even with ``mergeSchema``.

        Raises:
            FencedError: A later writer has claimed the table.
            TransientError: See ``commit``.
        """
        if self.exists():
            present = self.read()
            if dict(present.dtypes) != dict(rows.dtypes):
                whole = present.unionByName(rows)
                return self.save(whole, note, "overwrite", overwriteSchema="true")
        return self.append(rows, note)

    def append_nothing(self, note: CommitNote) -> TableState:
        """Commit ``note`` without any rows.

        Raises:
            FencedError: A later writer has claimed the table.
            TransientError: See ``commit``.
        """
        direct_commit = self.commit_directly(note, None, lambda _: ((), ()))
        return direct_commit or super().append_nothing(note)

    def save(
        self,
        rows: DataFrame,
        note: CommitNote,
        mode: str,
        partition: tuple[str, ...] = (),
        **options: str,
    ) -> TableState:
        """Write rows through Delta's public API, in one commit that carries ``note``.

        Args:
            rows: Rows to write.
            note: Note of the commit.
            mode: Spark's save mode.
            partition: Partition columns, unless the mode is ``append``.
            **options: Further options of the writer.

        Raises:
            FencedError: A later writer has claimed the table.
            TransientError: See ``commit``.
        """
        fixed_options = {
            "txnAppId": _application(note),
            "txnVersion": str(note.token),
            "userMetadata": note.to_json(),
            # Delta changes no schema where the session overwrites the written partitions alone.
            "partitionOverwriteMode": "static",
        }
        writer = rows.write.format("delta").mode(mode).partitionBy(*partition)
        return self.commit(note, lambda: writer.options(**options, **fixed_options).save(self.path))

    def merge_session(self, note: CommitNote) -> SparkSession:
        """Return a session whose next MERGE commits with ``note``."""
        settings = {
            "spark.databricks.delta.write.txnAppId": _application(note),
            "spark.databricks.delta.write.txnVersion": str(note.token),
            "spark.databricks.delta.commitInfo.userMetadata": note.to_json(),
            # The sink has checkpointed the changeset; another copy would cost a job.
            "spark.databricks.delta.merge.materializeSource": "none",
        }
        return own_session(self.spark, settings)

    def commit(self, note: CommitNote, write: Callable[[], object]) -> TableState:
        """Run ``write`` and prove from the table's log that it committed with ``note``.

        Args:
            note: Note that ``write`` puts into its commit.
            write: Writes the table in one commit.

        Returns:
            The table's state with the commit.

        Raises:
            FencedError: The log has a later writer's token.
            TransientError: The log lacks the commit for another reason: maintenance or another
                writer changed the table.
        """
        with self.conflicts_explained(note), committing(self.spark, self.path):
            write()
        state = committed(note, *self.newest_note())
        if state is None:
            message = f"The commit to table '{note.collection}' is not in its log; run again."
            raise TransientError(message)
        return state

    def commit_directly(
        self,
        note: CommitNote,
        previous: TableState | None,
        write: Callable[[DeltaTransaction], FileChange | None],
    ) -> TableState | None:
        """Commit through a ``DeltaTransaction``.

        Args:
            note: Note of the commit.
            previous: The table's state that this writer knows; None: read it.
            write: Writes data files; None: not possible.

        Returns:
            The table's state; None: a direct commit is not possible.

        Raises:
            FencedError: A later writer has claimed the table, or commits meanwhile.
            TransientError: Maintenance or another writer changed the table meanwhile.
        """
        if not self.direct:
            return None
        transaction = DeltaTransaction(self.spark, self.path, _application(note))
        if not transaction.plain:
            return None
        version, newest = transaction.version, previous.note if previous else None
        if previous is None or previous.version != version:
            version, newest = self.newest_note()
        if newest is None:
            return None
        state = committed(note, version, newest)
        if state is not None:
            return state
        with self.conflicts_explained(note):
            files = write(transaction)
            if files is None:
                return None
            version = transaction.commit(note.token, note.to_json(), *files)
        return TableState(version, note)

    def commit_each(
        self,
        previous: TableState,
        notes: Sequence[CommitNote],
        write: Callable[[VersionsTransaction], tuple[Mapping[int, CommitNote], int]],
    ) -> tuple[list[TableState], int]:
        """Commit several versions through a ``VersionsTransaction``.

        Args:
            previous: The table's state that this writer knows.
            notes: Notes of the commits that ``write`` may make.
            write: Makes the commits; see ``TransactionVersions.commit``.

        Returns:
            The table's state after each transaction, and the number of commits.

        Raises:
            FencedError: A later writer has claimed the table, or commits meanwhile.
            TransientError: Maintenance or another writer changed the table meanwhile.
            DataError: Another writer replaced a version that later ones build on.
        """
        transaction = VersionsTransaction(self.spark, self.path, _application(notes[-1]))
        if not (transaction.plain and transaction.hides_rows):
            message = f"Table '{notes[-1].collection}' was altered by another writer; run again."
            raise TransientError(message)
        if previous.version != transaction.version:
            self.refuse_fenced(notes[0])
        try:
            with self.conflicts_explained(notes[-1]):
                versions, commits = write(transaction)
        except LogBrokenError as error:
            message = (
                f"Another writer replaced version {error.version} of table "
                f"'{notes[-1].collection}' when lakeingest had made later ones, which a local disk "
                "lets it. The table has rows twice, or lacks some. Do this before anything else: "
                f"{self.repair(error.version - 1)}"
            )
            raise DataError(message) from error
        return [TableState(version, note) for version, note in versions.items()], commits

    def refuse_fenced(self, note: CommitNote) -> None:
        """Raise an error if a later writer has claimed the table, given the note of a commit."""
        _, newest = self.newest_note()
        if newest is not None and newest.token >= note.token:
            raise fenced_error(note)


def _application(note: CommitNote) -> str:
    """Return a pipeline's ``txnAppId``: a table has one id, so one fence, per pipeline."""
    return f"{_APP}{note.pipeline}"
