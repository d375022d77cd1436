"""Open and commit one Delta transaction directly, to make a small commit cheap.

Adapter. A MERGE of a few thousand rows takes eight Spark jobs. Each writer option that names a
transaction (``txnAppId``, ``txnVersion``) makes Delta rebuild the table's state to look up the
transaction's number: 0.5 s of a 1 s append, measured. Inside ``OptimisticTransaction`` neither is
needed: the checksum file of a version lists its data files (``files.py``), and the note in
its commit holds the number.

Two checks stay. The transaction id is among the transaction's *reads*, so a rival's commit
under the same id makes this transaction fail (``ConflictChecker``). The whole table is marked as
read, so a rival's change of any row makes it fail, too. Rejected: to write JSON files into the log
without Delta. That would have to repeat Delta's checks of protocol, conflicts and statistics.

Internal names, verified in 3.3.3 and used with 3.3 only (``available``): ``OptimisticTransaction``
(``readWholeTable``, ``readTxn``, ``updateMetadata``, ``writeFiles``, ``commit``),
``Metadata.copy``, ``DeltaLog.startTransaction``, ``AddFile.removeWithTimestamp``,
``SetTransaction``, ``DeltaOperations.Write``. Elsewhere the public API does the same, slower.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lakeingest.engine.active_session import active
from lakeingest.engine.delta.deletion_vectors import with_vector, write_vectors
from lakeingest.engine.delta.files import (
    HIDES_ROWS,
    DataFile,
    appends_only,
    data_files,
    hides_rows,
    is_plain,
    listed_files,
    rows_of_files,
    scala_sequence,
    schema_of,
)
from lakeingest.engine.delta.local_disk import committing_to
from lakeingest.engine.delta.log import java_log, newest_snapshot
from lakeingest.errors import InvariantError


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
        self._path = path
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
        """Return whether the table has only features that this adapter supports."""
        return is_plain(self._snapshot)

    @property
    def appends_only(self) -> bool:
        """Return whether the table refuses to have rows changed (``delta.appendOnly``)."""
        return appends_only(self._snapshot)

    @cached_property
    def schema(self) -> StructType:
        """Return the table's schema."""
        return schema_of(self._snapshot)

    def files(self) -> tuple[DataFile, ...] | None:
        """Return the data files of ``version``; see ``delta_files.listed_files``."""
        return listed_files(self._snapshot)

    def all_files(self) -> tuple[DataFile, ...]:
        """Return the data files of ``version``, also where no checksum lists them (a job)."""
        listed = self.files()
        if listed is not None:
            return listed
        with active(self._spark):
            actions = list(self._snapshot.allFiles().collectAsList())
            return data_files(scala_sequence(self._jvm, actions))

    def evolve(self, schema: StructType) -> None:
        """Change the table's schema with this commit; call it before the first ``write``.

        Delta keeps no list of files (``files``) for a version that changes the schema. It keeps one
        again for the next version.

        Args:
            schema: The table's present columns, unchanged, and the new columns.
        """
        self._change_metadata(schema.json(), self._snapshot.metadata().configuration())

    def begin_to_hide_rows(self) -> None:
        """Let the table have deletion vectors from this commit's version on, for good.

        With Delta 3.3, no command takes the feature from a table again.
        """
        metadata = self._snapshot.metadata()
        setting = self._jvm.scala.Tuple2(HIDES_ROWS, "true")
        configuration = getattr(metadata.configuration(), "$plus")(setting)
        self._change_metadata(metadata.schema().json(), configuration)

    def _change_metadata(self, schema: str, configuration: Any) -> None:
        old = self._snapshot.metadata()
        metadata = old.copy(
            old.id(),
            old.name(),
            old.description(),
            old.format(),
            schema,
            old.partitionColumns(),
            configuration,
            old.createdTime(),
        )
        with active(self._spark):
            self._transaction.updateMetadata(metadata, False)

    def read(self, files: Iterable[DataFile]) -> DataFrame:
        """Return the rows of ``files``, which must be data files of ``version``."""
        return rows_of_files(self._spark, self._log, self._snapshot, files)

    def write(self, frame: DataFrame) -> tuple[DataFile, ...]:
        """Write new data files; ``commit`` adds them to the table."""
        rows: Any = frame
        with active(self._spark):
            return data_files(self._transaction.writeFiles(rows._jdf))  # noqa: SLF001

    @cached_property
    def hides_rows(self) -> bool | None:
        """Return whether the table's writers may use deletion vectors; None: it is not decided."""
        return hides_rows(self._snapshot)

    def hide(
        self, rows: DataFrame, files: Sequence[DataFile]
    ) -> tuple[tuple[DataFile, ...], tuple[DataFile, ...]]:
        """Write deletion vectors that hide rows; ``commit`` gives them to their files.

        Args:
            rows: See ``deletion_vectors.write_vectors``.
            files: Data files of ``version`` whose number of rows is known.

        Returns:
            Files to add, which are the old ones with new vectors; the old files, to remove. A file
            of which no row is left is only removed.

        Raises:
            InvariantError: A row is in another file.
        """
        with active(self._spark):
            vectors = write_vectors(self._jvm, self._transaction, rows, files)
        if not vectors.keys() <= {file.name for file in files}:
            message = "rows to hide are in a file that the transaction has not read"
            raise InvariantError(message)
        old = tuple(file for file in files if file.name in vectors)
        new = (with_vector(file, vectors[file.name]) for file in old)
        return tuple(file for file in new if file is not None), old

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
        with active(self._spark), committing_to(self._log):
            operation = self._operation(metadata, rewrites=bool(removed))
            all_actions = scala_sequence(self._jvm, [*actions, token_action])
            return int(self._transaction.commit(all_actions, operation))

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

    def _nothing(self) -> Any:
        return self._jvm.scala.Option.empty()

    def _some(self, value: object) -> Any:
        return self._jvm.scala.Option.apply(value)
