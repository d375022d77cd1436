"""One Delta transaction, opened and closed by us: what a small commit costs without the engine.

Adapter. A MERGE of a few thousand rows takes eight Spark jobs, and each writer option that names a
transaction makes Delta rebuild the table's state (0.5 s of a 1 s append, measured), because it
looks the number up there. Inside ``OptimisticTransaction`` both can be left out: the version's
checksum file lists its data files, and the number is known from the note in its commit. What must
not be left out is kept: the number stands among the transaction's *reads*, so a rival's commit
under the same id still makes ours fail (``ConflictChecker``), and the whole table is marked as
read, so every rival change of rows does, too. The rejected way, JSON files written into the log by
ourselves, would have to repeat Delta's own checks of protocol, conflicts and statistics.

Internal names, looked at in 3.3.3 and used with 3.3 only (``available``): ``OptimisticTransaction``
(``readWholeTable``, ``readTxn``, ``updateMetadata``, ``writeFiles``, ``commit``),
``Metadata.copy``, ``VersionChecksum.allFiles``, ``DeltaLog`` (``startTransaction``,
``createDataFrame``), ``AddFile.removeWithTimestamp``, ``SetTransaction``,
``DeltaOperations.Write``. Elsewhere the public API does the same, slower.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lakeingest.engine.delta_log import has_log, java_log

_KNOWN_VERSIONS = ("3.3.",)
_KNOWN_FEATURES = {"appendOnly", "invariants", "timestampNtz"}


def available(spark: SparkSession) -> bool:
    """Tell whether this session's Delta is one whose internals are known here."""
    if not has_log(spark):
        return False
    session: Any = spark
    package = getattr(session._jvm.io.delta, "package$")  # noqa: SLF001 - this is the adapter
    return str(getattr(package, "MODULE$").VERSION()).startswith(_KNOWN_VERSIONS)


@dataclass(frozen=True)
class DataFile:
    """A data file of a table.

    Attributes:
        name: Last part of its path, as ``_metadata.file_name`` gives it.
        size: Its bytes.
        action: Delta's ``AddFile``.
    """

    name: str
    size: int
    action: Any

    def span(self, column: str) -> tuple[int, int] | None:
        """Return lowest and highest value of a column of whole numbers, as its statistics say."""
        statistics = json.loads(self.action.stats() or "{}")
        low, high = (statistics.get(end, {}).get(column) for end in ("minValues", "maxValues"))
        return (low, high) if isinstance(low, int) and isinstance(high, int) else None


class DeltaTransaction:
    """A transaction on the newest version of a table."""

    def __init__(
        self, spark: SparkSession, path: str, application: str, *, rows: bool = True
    ) -> None:
        """Open it; every later commit that names ``application`` makes this one fail.

        Args:
            spark: Session with Delta.
            path: The table.
            application: Identifier of the application's own transactions.
            rows: Whether a later commit that changes files makes it fail, too.
        """
        self._spark = spark
        self._application = application
        with self._active():
            self._jvm, self._log = java_log(spark, path)
            nothing = self._nothing()
            self._snapshot = self._log.update(False, nothing, nothing)
            self._transaction = self._log.startTransaction(nothing, self._some(self._snapshot))
            if rows:
                self._transaction.readWholeTable()
            getattr(self._transaction.readTxn(), "$plus$eq")(application)

    @property
    def version(self) -> int:
        """The version that is read; -1: there is no table."""
        return int(self._snapshot.version())

    @property
    def plain(self) -> bool:
        """Whether the table has no feature that this adapter would have to know.

        Not with deletion vectors, change data feed, column mapping, constraints, row tracking or
        partitions; nor with whatever a later Delta brings.
        """
        if self.version < 0 or not self._snapshot.metadata().partitionColumns().isEmpty():
            return False
        found = self._snapshot.protocol().implicitlyAndExplicitlySupportedFeatures().toSeq()
        return {found.apply(index).name() for index in range(found.size())} <= _KNOWN_FEATURES

    @cached_property
    def schema(self) -> StructType:
        """The table's schema."""
        return StructType.fromJson(json.loads(self._snapshot.schema().json()))

    def files(self) -> tuple[DataFile, ...] | None:
        """List the data files, without a job; null where Delta does not keep a list of them.

        Delta keeps one in a version's checksum file while they are few (fifty,
        ``spark.databricks.delta.allFilesInCrc.thresholdNumFiles``). Its own way of listing them,
        from the table's whole log, costs 0.4 s (measured).
        """
        checksum = self._snapshot.checksumOpt()
        if not checksum.isDefined() or not checksum.get().allFiles().isDefined():
            return None
        known = checksum.get()
        files = self._described(known.allFiles().get())
        whole = (len(files), sum(file.size for file in files))
        names = {file.name for file in files}
        if whole != (known.numFiles(), known.tableSizeBytes()) or len(names) < len(files):
            return None
        return files

    def evolve(self, schema: StructType) -> None:
        """Give the table another schema with this commit; to be called before anything is written.

        Delta keeps no list of files (``files``) of a version that changes the schema; of the next
        one it does again.

        Args:
            schema: The table's columns as they are, and new ones among them.
        """
        now = self._snapshot.metadata()
        changed = now.copy(
            now.id(),
            now.name(),
            now.description(),
            now.format(),
            schema.json(),
            now.partitionColumns(),
            now.configuration(),
            now.createdTime(),
        )
        with self._active():
            self._transaction.updateMetadata(changed, False)

    def read(self, files: Iterable[DataFile]) -> DataFrame:
        """Return the rows of ``files``, which must be among those of ``version``."""
        actions = self._sequence(file.action for file in files)
        with self._active():
            frame = self._log.createDataFrame(self._snapshot, actions, False, self._nothing())
        return DataFrame(frame, self._spark)

    def write(self, frame: DataFrame) -> tuple[DataFile, ...]:
        """Write new data files; they belong to the table once they are committed."""
        rows: Any = frame
        with self._active():
            return self._described(self._transaction.writeFiles(rows._jdf))  # noqa: SLF001

    def commit(
        self,
        token: int,
        metadata: str,
        added: Sequence[DataFile] = (),
        removed: Sequence[DataFile] = (),
    ) -> int:
        """Commit and return the new version.

        Args:
            token: Version of the application's own transaction.
            metadata: ``userMetadata`` of the commit.
            added: What ``write`` returned.
            removed: Files of ``version`` that are no longer of the table.

        Raises:
            Py4JJavaError: A rival's commit stands in the way (``Concurrent…Exception``).
        """
        now = int(time.time() * 1000)
        actions = [file.action for file in added]
        actions += [file.action.removeWithTimestamp(now, True) for file in removed]
        delta = self._jvm.org.apache.spark.sql.delta
        done = delta.actions.SetTransaction(self._application, token, self._some(now))
        with self._active():
            operation = self._operation(metadata, rewrites=bool(removed))
            return int(self._transaction.commit(self._sequence([*actions, done]), operation))

    def _operation(self, metadata: str, *, rewrites: bool) -> Any:
        """Name the commit in the table's history: a write that appends, or one that overwrites.

        Not ``Merge``, which a rewrite comes closest to: it has no place for ``metadata``.
        """
        modes = self._jvm.org.apache.spark.sql.SaveMode
        write = getattr(self._jvm.org.apache.spark.sql.delta, "DeltaOperations$Write")
        nothing = self._nothing()
        return write(
            modes.Overwrite if rewrites else modes.Append, nothing, nothing, self._some(metadata)
        )

    def _described(self, actions: Any) -> tuple[DataFile, ...]:
        found = (actions.apply(index) for index in range(actions.size()))
        return tuple(DataFile(a.path().rsplit("/", 1)[-1], int(a.size()), a) for a in found)

    def _nothing(self) -> Any:
        return self._jvm.scala.Option.empty()

    def _some(self, value: object) -> Any:
        return self._jvm.scala.Option.apply(value)

    def _sequence(self, items: Iterable[Any]) -> Any:
        buffer = self._jvm.scala.collection.mutable.ArrayBuffer()
        for item in items:
            getattr(buffer, "$plus$eq")(item)
        return buffer.toSeq()

    @contextmanager
    def _active(self) -> Iterator[None]:
        """Make our session the thread's active one, which Delta asks for its settings."""
        session: Any = self._spark
        sessions = session._jvm.org.apache.spark.sql.SparkSession  # noqa: SLF001
        before = sessions.getActiveSession()
        sessions.setActiveSession(session._jsparkSession)  # noqa: SLF001
        try:
            yield
        finally:
            if before.isDefined():
                sessions.setActiveSession(before.get())
            else:
                sessions.clearActiveSession()
