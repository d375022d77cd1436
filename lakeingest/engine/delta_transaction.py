"""Open and commit one Delta transaction directly, to make a small commit cheap.

Adapter. A MERGE of a few thousand rows takes eight Spark jobs. Each writer option that names a
transaction (``txnAppId``, ``txnVersion``) makes Delta rebuild the table's state to look up the
transaction's number: 0.5 s of a 1 s append, measured. Inside ``OptimisticTransaction`` neither is
needed: the checksum file of a version lists its data files, and the note in its commit holds the
number.

Two checks stay. The transaction id is among the transaction's *reads*, so a rival's commit
under the same id makes this transaction fail (``ConflictChecker``). The whole table is marked as
read, so a rival's change of any row makes it fail, too. Rejected: to write JSON files into the log
without Delta. That would have to repeat Delta's checks of protocol, conflicts and statistics.

Internal names, verified in 3.3.3 and used with 3.3 only (``available``): ``OptimisticTransaction``
(``readWholeTable``, ``readTxn``, ``updateMetadata``, ``writeFiles``, ``commit``),
``Metadata.copy``, ``VersionChecksum.allFiles``, ``DeltaLog`` (``startTransaction``,
``createDataFrame``), ``AddFile.removeWithTimestamp``, ``SetTransaction``,
``DeltaOperations.Write``. Elsewhere the public API does the same, slower.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lakeingest.engine.active_session import active
from lakeingest.engine.delta_log import has_log, java_log, newest_snapshot

_SUPPORTED_VERSIONS = ("3.3.",)
_SUPPORTED_FEATURES = {"appendOnly", "invariants", "timestampNtz"}


def available(spark: SparkSession) -> bool:
    """Return whether this adapter knows the internals of the session's Delta version."""
    if not has_log(spark):
        return False
    session: Any = spark
    package = getattr(session._jvm.io.delta, "package$")  # noqa: SLF001 - this is the adapter
    return str(getattr(package, "MODULE$").VERSION()).startswith(_SUPPORTED_VERSIONS)


@dataclass(frozen=True)
class DataFile:
    """A data file of a table.

    Attributes:
        name: Last part of its path, equal to ``_metadata.file_name``.
        size: Size in bytes.
        action: Delta's ``AddFile`` of the file.
    """

    name: str
    size: int
    action: Any

    def span(self, column: str) -> tuple[int, int] | None:
        """Return lowest and highest value of an integer column, from the file's statistics.

        Returns:
            Minimum and maximum; None: the statistics lack one of them as an integer.
        """
        statistics = json.loads(self.action.stats() or "{}")
        low, high = (statistics.get(end, {}).get(column) for end in ("minValues", "maxValues"))
        return (low, high) if isinstance(low, int) and isinstance(high, int) else None


class DeltaTransaction:
    """A transaction on the newest version of a table."""

    def __init__(
        self, spark: SparkSession, path: str, application: str, *, rows: bool = True
    ) -> None:
        """Open the transaction; a later commit under ``application`` makes it fail.

        Args:
            spark: Session with Delta.
            path: Path of the table.
            application: Identifier of the application's own transactions.
            rows: Whether a later commit that changes data files makes it fail, too.
        """
        self._spark = spark
        self._application = application
        with active(self._spark):
            self._jvm, self._log = java_log(spark, path)
            self._snapshot = newest_snapshot(spark, path)
            self._transaction = self._log.startTransaction(
                self._nothing(), self._some(self._snapshot)
            )
            if rows:
                self._transaction.readWholeTable()
            getattr(self._transaction.readTxn(), "$plus$eq")(application)

    @property
    def version(self) -> int:
        """Return the table version that the transaction reads; -1: there is no table."""
        return int(self._snapshot.version())

    @property
    def plain(self) -> bool:
        """Return whether the table has only features that this adapter supports.

        False for deletion vectors, change data feed, column mapping, constraints, row tracking and
        partitions, and for every feature that a later Delta adds.
        """
        if self.version < 0 or not self._snapshot.metadata().partitionColumns().isEmpty():
            return False
        features = self._snapshot.protocol().implicitlyAndExplicitlySupportedFeatures().toSeq()
        return {
            features.apply(index).name() for index in range(features.size())
        } <= _SUPPORTED_FEATURES

    @cached_property
    def schema(self) -> StructType:
        """Return the table's schema."""
        return StructType.fromJson(json.loads(self._snapshot.schema().json()))

    def files(self) -> tuple[DataFile, ...] | None:
        """List the data files without a Spark job.

        Delta keeps the list in a version's checksum file while the files are few (fifty,
        ``spark.databricks.delta.allFilesInCrc.thresholdNumFiles``). Delta's own way to list them,
        from the table's whole log, costs 0.4 s (measured).

        Returns:
            Data files of ``version``; None: there is no checksum file with a list, the list
            contradicts the checksum's number of files or bytes, or two files have the same name.
        """
        checksum = self._snapshot.checksumOpt()
        if not checksum.isDefined() or not checksum.get().allFiles().isDefined():
            return None
        content = checksum.get()
        files = self._data_files(content.allFiles().get())
        totals = (len(files), sum(file.size for file in files))
        names = {file.name for file in files}
        if totals != (content.numFiles(), content.tableSizeBytes()) or len(names) < len(files):
            return None
        return files

    def evolve(self, schema: StructType) -> None:
        """Change the table's schema with this commit; call it before the first ``write``.

        Delta keeps no list of files (``files``) for a version that changes the schema. It keeps one
        again for the next version.

        Args:
            schema: The table's present columns, unchanged, and the new columns.
        """
        old = self._snapshot.metadata()
        metadata = old.copy(
            old.id(),
            old.name(),
            old.description(),
            old.format(),
            schema.json(),
            old.partitionColumns(),
            old.configuration(),
            old.createdTime(),
        )
        with active(self._spark):
            self._transaction.updateMetadata(metadata, False)

    def read(self, files: Iterable[DataFile]) -> DataFrame:
        """Return the rows of ``files``, which must be data files of ``version``."""
        actions = self._sequence(file.action for file in files)
        with active(self._spark):
            frame = self._log.createDataFrame(self._snapshot, actions, False, self._nothing())
        return DataFrame(frame, self._spark)

    def write(self, frame: DataFrame) -> tuple[DataFile, ...]:
        """Write new data files; ``commit`` adds them to the table."""
        rows: Any = frame
        with active(self._spark):
            return self._data_files(self._transaction.writeFiles(rows._jdf))  # noqa: SLF001

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
            added: Data files that ``write`` returned.
            removed: Data files of ``version`` that the commit removes from the table.

        Raises:
            Py4JJavaError: A rival's commit conflicts (``Concurrent…Exception``).
        """
        now = int(time.time() * 1000)
        actions = [file.action for file in added]
        actions += [file.action.removeWithTimestamp(now, True) for file in removed]
        delta = self._jvm.org.apache.spark.sql.delta
        token_action = delta.actions.SetTransaction(self._application, token, self._some(now))
        with active(self._spark):
            operation = self._operation(metadata, rewrites=bool(removed))
            return int(
                self._transaction.commit(self._sequence([*actions, token_action]), operation)
            )

    def _operation(self, metadata: str, *, rewrites: bool) -> Any:
        """Return the operation for the table's history: a write in append or overwrite mode.

        Rejected: ``Merge``, although a rewrite resembles it most. It has no field for ``metadata``.
        """
        modes = self._jvm.org.apache.spark.sql.SaveMode
        write = getattr(self._jvm.org.apache.spark.sql.delta, "DeltaOperations$Write")
        nothing = self._nothing()
        return write(
            modes.Overwrite if rewrites else modes.Append, nothing, nothing, self._some(metadata)
        )

    def _data_files(self, actions: Any) -> tuple[DataFile, ...]:
        java_files = (actions.apply(index) for index in range(actions.size()))
        return tuple(DataFile(a.path().rsplit("/", 1)[-1], int(a.size()), a) for a in java_files)

    def _nothing(self) -> Any:
        return self._jvm.scala.Option.empty()

    def _some(self, value: object) -> Any:
        return self._jvm.scala.Option.apply(value)

    def _sequence(self, items: Iterable[Any]) -> Any:
        buffer = self._jvm.scala.collection.mutable.ArrayBuffer()
        for item in items:
            getattr(buffer, "$plus$eq")(item)
        return buffer.toSeq()
