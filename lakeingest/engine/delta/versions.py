"""Commit many versions of a Delta table at once: data and vectors first, then an entry for each.

Adapter. A commit of Delta's takes a tenth of a second to a second, whatever it changes, so a
version per source transaction would allow few transactions a second. Here the rows of all versions
are in files that the first of them needs, with deletion vectors that hide the rows of later
versions. What is left of a commit is to write its entry into the log (``log_writer.py``).

A version that only adds rows may have files of its own instead, without a vector. Many of these are
joined by a version behind the others, which changes no row.

A reader sees versions like any other. A writer of Delta's meets them as commits of others. If the
number of a version is taken, a blind append of another writer is passed over: it touches no file of
ours. Anything else may have removed one, so the rest is given up (``VersionTakenError``) and
planned anew by the caller. A kill leaves the versions before it, each of them whole.

The newest version gets a checksum, as Delta's own commits have one: it lists the table's files, so
the next batch needs no job to find them. Others have none, and Delta reads the log for them.

Internal names, verified in 3.3.3 and used with 3.3 only (``delta_files.available``): those of
``transaction.py`` and ``vector_file.py``; ``Action.fromJson``, ``Action.json``,
``OptimisticTransaction.incrementallyDeriveChecksum``, ``JsonUtils.mapper``,
``DeltaLog.checkpointAndCleanUpDeltaLog``, ``DeltaLog.assertRemovable``, ``DeltaOptions``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame

from lakeingest.engine.active_session import active
from lakeingest.engine.delta.files import DataFile, data_files, scala_sequence
from lakeingest.engine.delta.local_disk import committing_to
from lakeingest.engine.delta.log import commit_file, newest_snapshot
from lakeingest.engine.delta.log_entry import Action, addition, commit_info, lines, now_ms, removal
from lakeingest.engine.delta.log_writer import (
    EntryWriter,
    LogBrokenError,
    VersionReplacedError,
    VersionTakenError,
    entry_writer,
    sync_files,
    sync_log,
)
from lakeingest.engine.delta.transaction import DeltaTransaction
from lakeingest.engine.delta.vector_file import VectorFile
from lakeingest.engine.delta.versioned_file import FileStep, VersionedFile
from lakeingest.engine.in_turn import as_help
from lakeingest.errors import DataError, InvariantError

FILE_ROWS = 1_000
"""Most rows of a new file that several versions touch: each of them writes a vector of these."""

_CHECKPOINT_EVERY, _CHECKPOINT_SECONDS = 1_000, 24 * 3600
"""Versions, and time since the first of them, after which a checkpoint is due."""

_ACTIONS_PER_VERSION, _CHECKPOINT_AT_LAST = 20, 10_000
"""Actions of the last checkpoint for which a version more is waited for, up to so many versions.

To read, compare and write 70,000 actions takes 10 seconds of a core (measured), so 20 are about
3 ms for each version, a fifth of what the version takes.
"""


@dataclass(frozen=True)
class Joining:
    """A last version, in which fewer files have the rows of all new ones.

    Attributes:
        metadata: ``userMetadata`` of the commit.
        files: Data files that ``write_small_files`` returned.
    """

    metadata: str
    files: Sequence[DataFile]


@dataclass(frozen=True)
class NewVersion:
    """One version to commit.

    Attributes:
        token: Version of the application's own transaction.
        metadata: ``userMetadata`` of the commit.
        steps: What it does to rows, by the name of their file.
    """

    token: int
    metadata: str
    steps: Mapping[str, FileStep]


class VersionsTransaction(DeltaTransaction):
    """A transaction on the newest version of a table that commits several versions after it."""

    def write_small_files(self, frame: DataFrame, rows_per_file: int) -> tuple[DataFile, ...]:
        """Write new data files of so many rows each, in the order of the rows.

        Args:
            frame: Rows in the order of their partitions.
            rows_per_file: Rows of each file but the last one of a partition, which may have fewer.
        """
        rows: Any = frame
        session: Any = self._spark
        scala = self._jvm.scala
        options = scala.collection.immutable.HashMap()
        # A table may want its writes optimised: Delta then moves rows between tasks.
        for pair in (("maxRecordsPerFile", str(rows_per_file)), ("optimizeWrite", "false")):
            options = getattr(options, "$plus")(scala.Tuple2(*pair))
        with active(self._spark):
            settings = session._jsparkSession.sessionState().conf()  # noqa: SLF001
            delta_options = self._jvm.org.apache.spark.sql.delta.DeltaOptions(options, settings)
            written = self._transaction.writeFiles(
                rows._jdf,  # noqa: SLF001
                self._some(delta_options),
            )
            files = data_files(written)
        return tuple(sorted(files, key=lambda file: _place_in_order(file.name)))

    def commit_each(
        self,
        versions: Sequence[NewVersion],
        old_files: Iterable[DataFile],
        new_files: Sequence[DataFile],
        before_commit: Callable[[int], None],
        joining: Joining | None = None,
    ) -> list[int]:
        """Commit one version after another; return their numbers, and that of a joining version.

        Args:
            versions: The versions, in order; each has a step.
            old_files: Data files of ``version`` that have a step.
            new_files: Data files that ``write_small_files`` returned.
            before_commit: Called before each commit with the number of commits made.
            joining: A version after them that changes no row. If its number is taken, it is left
                out.

        Raises:
            VersionTakenError: Another writer has changed the table. The versions before that stay.
        """
        with VectorFile(self._jvm, self._log) as vectors:
            files = {file.name: self._versioned_file(file, vectors) for file in old_files}
            before = {name: file.added for name, file in files.items()}
            files.update((file.name, VersionedFile(file)) for file in new_files)
            entries = [self._entry(version, files, vectors) for version in versions]
            if any(file.hidden and file.hidden.is_miscounted for file in files.values()):
                message = "a version hides a hidden row, or shows one that is shown"
                raise InvariantError(message)
        if any(file.hidden and file.hidden.number for file in files.values()):
            self._log.assertRemovable(self._snapshot)
        written, last = [*new_files], None
        if joining is not None:
            last = _joined(joining, new_files, files)
            written += joining.files
        paths = (unquote(str(file.action.path())) for file in written)
        sync_files(self._log, (*paths, *vectors.file_names))
        writer = entry_writer(self._spark, self._log)
        numbers = self._write(writer, entries, last, before_commit)
        joined = len(numbers) > len(versions)
        if joined == (last is not None) and not self._passed:
            # All versions are made. Where a checksum is missing, Delta reads the log.
            write = partial(self._write_checksum, numbers[-1], entries[-1], before, files)
            as_help("A checksum", write)
        self._check(writer, numbers[-1])
        return numbers

    def _check(self, writer: EntryWriter, newest: int) -> None:
        """Check that no other writer has replaced an entry; a checksum would describe ours.

        The checksum takes longer than a commit of Delta's has between its look and its rename.
        """
        try:
            writer.check()
        except (VersionReplacedError, LogBrokenError):
            path = self._checksum(newest)
            with suppress(Py4JJavaError):
                path.getFileSystem(self._log.newDeltaHadoopConf()).delete(path, False)
            raise

    def _checksum(self, number: int) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._log.logPath(), f"{number:020d}.crc")

    def _versioned_file(self, file: DataFile, vectors: VectorFile) -> VersionedFile:
        if file.rows is None:
            message = (
                f"Data file {file.name} of {self._log.dataPath().toString()} has no statistics, so "
                "its rows cannot be hidden one by one. Another writer has written it. Run once "
                "with lakeingest.commit.mode=grouped, which writes it again."
            )
            raise DataError(message)
        descriptor = file.action.deletionVector()
        hidden = vectors.none() if descriptor is None else vectors.stored(descriptor)
        return VersionedFile(file, hidden)

    def _entry(
        self, version: NewVersion, files: Mapping[str, VersionedFile], vectors: VectorFile
    ) -> list[str]:
        changes = [
            action
            for name, step in version.steps.items()
            for action in files[name].after(step, vectors)
        ]
        only_adds = all("add" in action for action in changes)
        now, mode = now_ms(), "Append" if only_adds else "Overwrite"
        information = commit_info("WRITE", version.metadata, now, mode=mode)
        token = {"appId": self._application, "version": version.token, "lastUpdated": now}
        return lines([information, {"txn": token}, *changes])

    def _write(
        self,
        writer: EntryWriter,
        entries: Sequence[list[str]],
        last: list[str] | None,
        before_commit: Callable[[int], None],
    ) -> list[int]:
        """Write the entries, each under the next number; pass over blind appends of others.

        Where the number of ``last`` is taken, it is left out.
        """
        number = self.version
        numbers: list[int] = []
        with ExitStack() as stack:
            stack.enter_context(active(self._spark))
            stack.enter_context(committing_to(self._log))
            stack.callback(sync_log, self._log)
            for entry in entries:
                before_commit(len(numbers))
                number = self._write_next(writer, number + 1, entry)
                numbers.append(number)
            if last is not None:
                before_commit(len(numbers))
                with suppress(VersionTakenError):
                    numbers.append(self._write_next(writer, number + 1, last))
        self._made = len(numbers)
        return numbers

    def _write_next(self, writer: EntryWriter, number: int, entry: list[str]) -> int:
        while True:
            try:
                writer.write(number, entry)
            except VersionTakenError:
                if not self._is_blind_append(number):
                    writer.check()
                    raise
                self._passed = True
                number += 1
            else:
                return number

    _passed = False
    """Whether a version of another writer was passed over."""

    _made = 0
    """Number of commits made."""

    def _is_blind_append(self, number: int) -> bool:
        text = self._log.store().read(
            commit_file(self._jvm, self._log.logPath(), number), self._log.newDeltaHadoopConf()
        )
        actions = [json.loads(line) for line in text.mkString("\n").split("\n") if line]
        kinds = {kind for action in actions for kind in action}
        ours = any(action.get("txn", {}).get("appId") == self._application for action in actions)
        return kinds <= {"commitInfo", "txn", "add"} and not ours

    def _write_checksum(
        self,
        number: int,
        entry: Sequence[str],
        before: Mapping[str, Action | None],
        files: Mapping[str, VersionedFile],
    ) -> None:
        """Write the checksum of the newest version.

        Where the version before the new ones has none, Delta reads what it has (a job).
        """
        actions: list[Action] = [
            {"remove": removal(action)} for action in before.values() if action is not None
        ]
        actions += [{"add": file.added} for file in files.values() if file.added is not None]
        actions += [action for action in map(json.loads, entry) if "txn" in action]
        java_actions = getattr(self._jvm.org.apache.spark.sql.delta.actions, "Action$")
        parse = getattr(java_actions, "MODULE$").fromJson
        # A checksum does not say its version, and Delta begins with the snapshot right before it.
        next_version, snapshot = self.version + 1, self._jvm.scala.util.Left(self._snapshot)
        session: Any = self._spark
        with active(self._spark):
            derived = self._transaction.incrementallyDeriveChecksum(
                session._jsparkSession,  # noqa: SLF001
                self._log,
                next_version,
                scala_sequence(self._jvm, (parse(json.dumps(action)) for action in actions)),
                self._snapshot.metadata(),
                self._snapshot.protocol(),
                "WRITE",
                self._nothing(),
                snapshot,
                True,
            )
            if derived.isLeft():
                return
            utils = getattr(self._jvm.org.apache.spark.sql.delta.util, "JsonUtils$")
            text = getattr(utils, "MODULE$").mapper().writeValueAsString(derived.right().get())
            path = self._checksum(number)
            stream = path.getFileSystem(self._log.newDeltaHadoopConf()).create(path, False)
            try:
                stream.write(bytes(f"{text}\n", "utf-8"))
            finally:
                stream.close()

    def checkpoint_if_due(self, begin: Callable[[Callable[[], None]], None]) -> None:
        """Begin to write a checkpoint if there are many versions since the last one.

        The log is listed here, behind the batch's last entry, and not by the work beside the next
        batch: a listing of a local folder that meets new entries may have one without the one
        before it, which Delta takes for a broken log (measured: 8 of 13 such listings, in a log of
        30,000 entries). The next batch begins with this listing.

        Args:
            begin: Begins work that nobody waits for.
        """
        # To list the log takes longer than to write a few versions, where it has many.
        if not self._is_due(self._snapshot, self._made):
            return
        with active(self._spark):
            snapshot = newest_snapshot(self._spark, self._path)
        if self._is_due(snapshot):
            begin(partial(self._checkpoint, snapshot))

    def _is_due(self, snapshot: Any, more: int = 0) -> bool:
        """Return whether a checkpoint is due, given a snapshot and the commits after it."""
        commits = snapshot.logSegment().deltas()
        number = commits.size() + more
        if number >= _CHECKPOINT_EVERY and number >= self._worth_a_checkpoint():
            return True
        if not commits.size():
            return False
        # A version needs the commits since the checkpoint before it for as long as it is kept.
        age = time.time() - commits.head().getModificationTime() / 1000
        return bool(age > _CHECKPOINT_SECONDS)

    def _worth_a_checkpoint(self) -> int:
        """Return how many versions are worth a checkpoint as large as the last one.

        Each vector that was replaced stays in the checkpoints for a week. A table with many of
        them would spend more time on checkpoints than on versions.
        """
        last = self._log.readLastCheckpointFile()
        actions = last.get().size() if last.isDefined() else 0
        return min(int(actions) // _ACTIONS_PER_VERSION, _CHECKPOINT_AT_LAST)

    def _checkpoint(self, snapshot: Any) -> None:
        """Write a checkpoint.

        Delta compares what the log says with the checksum of the version before it writes one.
        """
        with active(self._spark):
            self._log.checkpointAndCleanUpDeltaLog(snapshot, self._nothing())


def _joined(
    joining: Joining, new_files: Sequence[DataFile], files: dict[str, VersionedFile]
) -> list[str]:
    """Return the entry of a joining version; replace the new files in ``files``."""
    actions = [commit_info("OPTIMIZE", joining.metadata, now_ms())]
    for file in new_files:
        added = files.pop(file.name).added
        if added is not None:
            actions.append({"remove": removal(added, changes_rows=False)})
    for file in joining.files:
        joined = files[file.name] = VersionedFile(file)
        joined.added = addition(joined.template, changes_rows=False)
        actions.append({"add": joined.added})
    return lines(actions)


def _place_in_order(name: str) -> tuple[int, int]:
    """Return the numbers of a file's task and of the file there (``part-00001-…-c003.…``)."""
    task, number = name.split("-")[1], name.rpartition("-c")[2].partition(".")[0]
    return int(task), int(number)
