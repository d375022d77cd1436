"""List and read the data files of a Delta version without a Spark job.

Adapter. Delta's own way to list a version's files reads the table's whole log: 0.4 s (measured),
and one or two jobs for each table that is read. The checksum file of a version lists its files,
while they are few (``spark.databricks.delta.allFilesInCrc.thresholdNumFiles``).

Internal names, verified in 3.3.3 and used with 3.3 only (``available``):
``VersionChecksum`` (``allFiles``, ``numFiles``, ``tableSizeBytes``), ``DeltaLog.createDataFrame``,
``Protocol.implicitlyAndExplicitlySupportedFeatures``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lakeingest.engine.active_session import active
from lakeingest.engine.delta.log import has_log, java_log, newest_snapshot, snapshot_at_hand
from lakeingest.engine.few_rows import for_few_rows

_SUPPORTED_VERSIONS = ("3.3.",)
_DELETION_VECTORS = "deletionVectors"
HIDES_ROWS = "delta.enableDeletionVectors"
"""Table property by which a table's writers use deletion vectors."""

_SUPPORTED_FEATURES = {"appendOnly", "invariants", "timestampNtz", _DELETION_VECTORS}

_FEATURES: dict[str, frozenset[str]] = {}
"""Features of the protocols met so far: a lake has one or two, and a call asks for one feature."""


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

    @cached_property
    def rows(self) -> int | None:
        """Return the number of rows that were written to the file; None: it is unknown."""
        rows = self.action.numPhysicalRecords()
        return int(rows.get()) if rows.isDefined() else None

    @cached_property
    def hidden_rows(self) -> int:
        """Return the number of its rows that a deletion vector hides."""
        return int(self.action.numDeletedRecords())

    def span(self, column: str) -> tuple[int, int] | None:
        """Return lowest and highest value of an integer column, from the file's statistics.

        They count hidden rows, too.

        Returns:
            Minimum and maximum; None: the statistics lack one of them as an integer.
        """
        low, high = (
            self._statistics.get(end, {}).get(column) for end in ("minValues", "maxValues")
        )
        return (low, high) if isinstance(low, int) and isinstance(high, int) else None

    @cached_property
    def _statistics(self) -> dict[str, Any]:
        return dict(json.loads(self.action.stats() or "{}"))


def number_of_rows(files: Iterable[DataFile]) -> int | None:
    """Return the number of rows that were written to files; None: one of them does not say."""
    rows = [file.rows for file in files]
    counts = [number for number in rows if number is not None]
    return sum(counts) if len(counts) == len(rows) else None


def is_plain(snapshot: Any) -> bool:
    """Return whether a table has only features that these adapters support.

    False for change data feed, column mapping, constraints, row tracking and partitions, for every
    feature that a later Delta adds, and without a table.

    Args:
        snapshot: Delta's ``Snapshot``.
    """
    if snapshot.version() < 0 or not snapshot.metadata().partitionColumns().isEmpty():
        return False
    return _features(snapshot) <= _SUPPORTED_FEATURES


def schema_of(snapshot: Any) -> StructType:
    """Return a table's schema.

    Args:
        snapshot: Delta's ``Snapshot``.
    """
    return _parsed(snapshot.schema().json())


@lru_cache(maxsize=1024)
def _parsed(schema: str) -> StructType:
    return StructType.fromJson(json.loads(schema))


def hides_rows(snapshot: Any) -> bool | None:
    """Return whether a table's writers may use deletion vectors.

    Returns:
        The answer; None: no property of the table decides it. A RESTORE takes the property away,
        and leaves the feature.
    """
    setting = snapshot.metadata().configuration().get(HIDES_ROWS)
    if not setting.isDefined():
        return None
    return _DELETION_VECTORS in _features(snapshot) and str(setting.get()).lower() == "true"


def may_hide_rows(spark: SparkSession, path: str, *, begin: bool) -> bool:
    """Return whether a table is plain and its writers may use deletion vectors.

    The answer is that of the version at hand, without a look at the log. A transaction on the
    newest version looks again.

    Args:
        spark: Session with Delta.
        path: Path of the table.
        begin: The answer where no property of the table decides it, and where there is no table.
    """
    with active(spark):
        snapshot = snapshot_at_hand(spark, path)
        if snapshot.version() < 0:
            return begin
        decided = hides_rows(snapshot)
        return is_plain(snapshot) and (begin if decided is None else decided)


def _features(snapshot: Any) -> frozenset[str]:
    protocol = snapshot.protocol()
    text = protocol.toString()
    if text not in _FEATURES:
        features = protocol.implicitlyAndExplicitlySupportedFeatures().toSeq()
        names = (features.apply(index).name() for index in range(features.size()))
        _FEATURES[text] = frozenset(names)
    return _FEATURES[text]


def appends_only(snapshot: Any) -> bool:
    """Return whether a table refuses to have rows changed (``delta.appendOnly``).

    Args:
        snapshot: Delta's ``Snapshot``.
    """
    setting = snapshot.metadata().configuration().get("delta.appendOnly")
    return bool(setting.isDefined()) and str(setting.get()).lower() == "true"


def takes_only_appends(spark: SparkSession, path: str) -> bool:
    """Return ``appends_only`` of the newest version of a table."""
    if not has_log(spark):
        return False
    with active(spark):
        return appends_only(newest_snapshot(spark, path))


def listed_files(snapshot: Any) -> tuple[DataFile, ...] | None:
    """List a version's data files from its checksum file.

    Args:
        snapshot: Delta's ``Snapshot``.

    Returns:
        The files; None: there is no checksum file with a list, the list contradicts the checksum's
        number of files or bytes, or two files have the same name.
    """
    checksum = snapshot.checksumOpt()
    if not checksum.isDefined() or not checksum.get().allFiles().isDefined():
        return None
    content = checksum.get()
    files = data_files(content.allFiles().get())
    totals = (len(files), sum(file.size for file in files))
    names = {file.name for file in files}
    if totals != (content.numFiles(), content.tableSizeBytes()) or len(names) < len(files):
        return None
    return files


def plain_files(snapshot: Any) -> tuple[DataFile, ...] | None:
    """Return ``listed_files`` of a plain table; None also where the table is not plain."""
    return listed_files(snapshot) if is_plain(snapshot) else None


class TableSize(NamedTuple):
    """Number of a table's data files, and of their bytes."""

    files: int
    octets: int


def plain_size(spark: SparkSession, path: str) -> TableSize | None:
    """Return the size of a plain table's newest version.

    Returns:
        The size; None: the version's checksum file does not show it, or the table is not plain.
    """
    if not available(spark):
        return None
    with active(spark):
        snapshot = newest_snapshot(spark, path)
        checksum = snapshot.checksumOpt()
        if not checksum.isDefined() or not is_plain(snapshot):
            return None
        content = checksum.get()
        return TableSize(int(content.numFiles()), int(content.tableSizeBytes()))


def listed_sizes(spark: SparkSession, path: str) -> list[int] | None:
    """Return the bytes of each data file of a plain table's newest version.

    Returns:
        The sizes; None: see ``plain_files``.
    """
    with active(spark):
        files = plain_files(newest_snapshot(spark, path))
        return None if files is None else [file.size for file in files]


def highest_rows(spark: SparkSession, path: str, column: str) -> tuple[int, DataFrame] | None:
    """Return the highest value of an integer column, and the rows of the files that have it.

    Args:
        spark: Session with Delta.
        path: Path of the table, whose newest version counts.
        column: The column.

    Returns:
        The value and the rows, in a session for few rows if the files have few; None: the listed
        files and their statistics do not show the value.
    """
    if not available(spark):
        return None
    with active(spark):
        snapshot = newest_snapshot(spark, path)
        files = plain_files(snapshot) or ()
    spans = [None if file.hidden_rows else file.span(column) for file in files]
    highs = [span[1] for span in spans if span is not None]
    if not highs or len(highs) < len(files):
        return None
    highest = max(highs)
    holders = [file for file, high in zip(files, highs, strict=True) if high == highest]
    _, log = java_log(spark, path)
    rows, number = rows_of_files(spark, log, snapshot, holders), number_of_rows(holders)
    return highest, rows if number is None else for_few_rows(rows, number)


def rows_of_files(
    spark: SparkSession, log: Any, snapshot: Any, files: Iterable[DataFile]
) -> DataFrame:
    """Return the rows of ``files``, which must be data files of a plain table's version.

    Args:
        spark: Session with Delta.
        log: Delta's ``DeltaLog`` of the table.
        snapshot: Its ``Snapshot`` of the version.
        files: Some of ``listed_files``.
    """
    session: Any = spark
    jvm = session._jvm  # noqa: SLF001 - this is the adapter
    actions = scala_sequence(jvm, (file.action for file in files))
    with active(spark):
        frame = log.createDataFrame(snapshot, actions, False, jvm.scala.Option.empty())
    return DataFrame(frame, spark)


def data_files(actions: Any) -> tuple[DataFile, ...]:
    """Return the files of a Scala sequence of ``AddFile``."""
    java_files = (actions.apply(index) for index in range(actions.size()))
    return tuple(DataFile(file_name(a.path()), int(a.size()), a) for a in java_files)


def file_name(path: str) -> str:
    """Return the last part of a path."""
    return path.rsplit("/", 1)[-1]


def scala_sequence(jvm: Any, items: Iterable[Any]) -> Any:
    """Return ``items`` as a Scala sequence."""
    buffer = jvm.scala.collection.mutable.ArrayBuffer()
    for item in items:
        getattr(buffer, "$plus$eq")(item)
    return buffer.toSeq()
