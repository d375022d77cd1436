"""Read a Delta table as of a version, with fewer looks at its log than Delta's option needs.

Adapter. The option ``versionAsOf`` lists the table's log up to three times. A log keeps 30 days of
commits (``delta.logRetentionDuration``): for a table that changes each minute, 43,200 files. To
list them takes half a second on a local disk, and more in an object store. Then one or two jobs
find the version's files. Its checksum file lists them, while they are few: eight old versions of a
small table took 9 s by the option, and 2 s so (measured).

A writer has read the table's state before. After that, and after each commit of Delta's, its
cached log has the newest version at hand, and needs no look at all (``cached_snapshot``). Versions
that lakeingest has committed itself (``versions.py``) take one listing. A reader looks
(``rows_as_of``): it may have the log of a table at hand that was made anew since.

Internal names, verified in 3.3.3 and used with 3.3 only (``available``): ``DeltaLog``
(``unsafeVolatileSnapshot``, ``getSnapshotAt``, ``createRelation``). The relation is the one that
``versionAsOf`` makes.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lakeingest.engine.active_session import active
from lakeingest.engine.delta.files import (
    available,
    plain_files,
    rows_of_files,
    scala_sequence,
    schema_of,
)
from lakeingest.engine.delta.log import java_log, newest_snapshot


def cached_snapshot(spark: SparkSession, path: str, version: int) -> DataFrame | None:
    """Return the table's rows as of ``version``.

    Returns:
        The rows; None: Delta's cached log is at another version.
    """
    if not available(spark):
        return None
    with active(spark):
        jvm, log, snapshot = _at_hand(spark, path, version)
        return None if snapshot is None else _rows(spark, jvm, log, snapshot)


def rows_as_of(spark: SparkSession, path: str, version: int) -> DataFrame:
    """Return the table's rows as of ``version``.

    Where this adapter finds no such version, Delta's option says what is wrong. Of a version whose
    files are listed, a filter skips Parquet's row groups by their statistics, and no whole files:
    they are few.
    """
    if available(spark):
        with suppress(Py4JError), active(spark):
            newest = newest_snapshot(spark, path)
            jvm, log = java_log(spark, path)
            no_value = jvm.scala.Option.empty()
            is_newest = newest.version() == version
            snapshot = newest if is_newest else log.getSnapshotAt(version, no_value, no_value)
            return _rows(spark, jvm, log, snapshot)
    return spark.read.format("delta").option("versionAsOf", version).load(path)


def _rows(spark: SparkSession, jvm: Any, log: Any, snapshot: Any) -> DataFrame:
    files = plain_files(snapshot)
    if files is not None:
        return rows_of_files(spark, log, snapshot, files)
    session: Any = spark
    no_filters, option = scala_sequence(jvm, ()), jvm.scala.Option
    relation = log.createRelation(no_filters, option.apply(snapshot), option.empty(), True)
    java_frame = session._jsparkSession.baseRelationToDataFrame(relation)  # noqa: SLF001
    return DataFrame(java_frame, spark)


def cached_schema(spark: SparkSession, path: str, version: int) -> StructType | None:
    """Return the table's schema as of ``version``; None: Delta's cached log is at another one."""
    if not available(spark):
        return None
    with active(spark):
        _, _, snapshot = _at_hand(spark, path, version)
        return None if snapshot is None else schema_of(snapshot)


def _at_hand(spark: SparkSession, path: str, version: int) -> tuple[Any, Any, Any | None]:
    """Return the JVM, the table's ``DeltaLog``, and its ``Snapshot`` if it is of ``version``."""
    jvm, log = java_log(spark, path)
    snapshot = log.unsafeVolatileSnapshot()
    if 0 <= snapshot.version() < version:
        snapshot = newest_snapshot(spark, path)
    return jvm, log, snapshot if snapshot.version() == version else None
