"""Run plans over few rows in one partition and without generated code.

Adapter. By default Spark writes Java code for every plan and compiles it, and shuffles rows to
group or to join them. For a batch of a few hundred rows this takes longer than the batch. So a
frame of few rows goes on in a session for such rows, with everything that is derived from it.

Rejected: a setting of the pipeline. One pipeline meets both: a backlog and then small batches,
large tables and small ones. Rejected, too: to change the settings of the run's session while it
works. Other threads plan in it, and Spark reads some settings twice, when it plans a scan and when
it runs the scan.

Internal name, verified in Spark 3.5: ``Dataset.ofRows``, which gives a plan to another session.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakeingest.engine.local_checkpoint import local_checkpoint
from lakeingest.engine.own_session import own_session

FEW_ROWS = 10_000
"""Number of rows up to which generated code saves nothing, or costs more than it saves.

Measured on two cores, batches of 8,000 rows over four tables: a JVM that has run for a minute takes
as long with generated code as without. A young one, such as that of a run that a scheduler starts
every few minutes, takes half as long again with it.
"""

FEW_BYTES = 16 * 1024 * 1024
"""Size of rows as text up to which one task takes them all."""

_FEW_RANGES = 16
"""Number of partitions of a source that one task reads, one after another."""

READS_IN_BATCHES = "spark.sql.parquet.enableVectorizedReader"
"""Setting that Hudi changes in every session that reads its tables."""

FOR_FEW_ROWS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    # One partition needs no plan that is made again after each stage.
    "spark.sql.adaptive.enabled": "false",
    # A broadcast is a job of its own, for which a local checkpoint waits: they were a quarter of
    # the jobs of a batch over tables with key changes (measured). One that a hint asks for stays.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    # Who reads a file decides whether it is read in batches, by the settings of its own session. A
    # session that expects none takes them for rows, and fails. Hudi changes the setting meanwhile
    # (``HoodieFileGroupReaderBasedFileFormat``, 1.2). Here nothing is read, so a user's ``false``
    # holds where it matters.
    READS_IN_BATCHES: "true",
}

_SESSIONS: WeakKeyDictionary[SparkSession, SparkSession] = WeakKeyDictionary()
"""The session for few rows of each session."""

_FOR_FEW_ROWS: WeakSet[SparkSession] = WeakSet()


def for_few_rows(frame: DataFrame, rows: int, size: int = 0, among: int = 0) -> DataFrame:
    """Return a frame; if its rows are few, in one partition of a session for few rows.

    Where all rows are in one partition, Spark groups and joins them without a shuffle. Rows that
    are few among many are selected in the session of ``frame`` and stored: its generated code looks
    at a million rows ten times as fast, and every later step reads the few alone.

    Args:
        frame: Any frame.
        rows: Number of its rows, or a bound.
        size: Size of its rows in bytes, as text; 0: unknown.
        among: Number of rows that Spark reads to find them.
    """
    if rows > FEW_ROWS or size > FEW_BYTES:
        return frame
    # From many rows, every task selects those of its own partition.
    single = local_checkpoint(frame.repartition(1)) if among > FEW_ROWS else frame.coalesce(1)
    return in_session(single, session_for_few_rows(frame.sparkSession))


def records_for_few_rows(frame: DataFrame, rows: int, ranges: int) -> DataFrame:
    """Return a source's records, as ``for_few_rows`` does if they are few.

    Args:
        frame: The records.
        rows: Their number.
        ranges: Number of the source's partitions that they are in.
    """
    return for_few_rows(frame, rows) if ranges <= _FEW_RANGES else frame


def to_join(frame: DataFrame, other: DataFrame) -> DataFrame:
    """Return a frame of few rows, marked for a join with another one that keeps its rows in place.

    A broadcast is a job of its own. In the session for few rows, all are in one partition, and
    need none.

    Args:
        frame: The frame, small enough to broadcast.
        other: The frame that it is joined to.
    """
    if frame.sparkSession in _FOR_FEW_ROWS and other.sparkSession in _FOR_FEW_ROWS:
        return frame.hint("shuffle_hash")
    return F.broadcast(frame)


def in_session(frame: DataFrame, spark: SparkSession) -> DataFrame:
    """Return a frame whose further plans run with the settings of ``spark``, if that is possible.

    Spark Connect has no such session. What the frame reads, it reads as before.
    """
    if frame.sparkSession is spark or not hasattr(spark, "_jsparkSession"):
        return frame
    rows: Any = frame
    session: Any = spark
    plan = rows._jdf.queryExecution().analyzed()  # noqa: SLF001 - this is the adapter
    try:
        datasets = session._jvm.org.apache.spark.sql.Dataset  # noqa: SLF001
        return DataFrame(datasets.ofRows(session._jsparkSession, plan), spark)  # noqa: SLF001
    except Py4JError:  # Another engine has no such method.
        return frame


def session_for_few_rows(spark: SparkSession) -> SparkSession:
    """Return a session's own session for few rows, or the session itself if it is one."""
    if spark in _FOR_FEW_ROWS:
        return spark
    if spark not in _SESSIONS:
        _SESSIONS[spark] = own_session(spark, FOR_FEW_ROWS)
        _FOR_FEW_ROWS.add(_SESSIONS[spark])
    return _SESSIONS[spark]
