"""Read a Delta table as of a version that this process knows already, without a look at its log.

Adapter. The option ``versionAsOf`` lists the table's log up to three times. A log keeps 30 days of
commits (``delta.logRetentionDuration``): for a table that changes each minute, 43,200 files. To
list them takes half a second on a local disk, and more in an object store. After a run has read a
table's state, and after each commit of Delta's, its cached log has the newest version at hand.
Versions that lakeingest has committed itself (``versions.py``) take one listing.

Internal names, verified in 3.3.3 and used with 3.3 only (``available``): ``DeltaLog``
(``unsafeVolatileSnapshot``, ``createRelation``). The relation is the one that ``versionAsOf``
makes; where the version's files are listed, the frame reads these files, without a job to find
them.

Only for a writer, which has read the table's state before. Rejected: for readers, too. A session
that looks seldom may have the log of a table at hand that was made anew since.
"""

from __future__ import annotations

from typing import Any

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
    session: Any = spark
    with active(spark):
        jvm, log, snapshot = _at_hand(spark, path, version)
        if snapshot is None:
            return None
        files = plain_files(snapshot)
        if files is not None:
            return rows_of_files(spark, log, snapshot, files)
        no_filters = scala_sequence(jvm, ())
        option = jvm.scala.Option
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
