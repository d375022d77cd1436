"""A session of our own beside the user's: what is set in it is set for nobody else.

Adapter. ``newSession()`` is the rejected way: it forgets what the user set at run time, and on
Databricks that is how a notebook gives its storage credentials. The JVM's ``cloneSession`` keeps
settings and temporary views (``org.apache.spark.sql.SparkSession``, Spark 3 and 4). Where there is
no JVM gateway (Spark Connect) settings live on the server and ``newSession`` has to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

AS_THEY_ARE = {
    # Else Spark refuses to write dates before 1582 and moments before 1900, for it cannot know
    # whether readers count by the Julian calendar; Delta and Hudi readers never do.
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.avro.datetimeRebaseModeInWrite": "CORRECTED",
    # Of files that do not say by whom they were written (Hudi's, delta-rs'); others say it.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.avro.datetimeRebaseModeInRead": "CORRECTED",
    # Spark's INT96 is read as nanoseconds by others, which end in the years 1677 and 2262.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
"""What a session that writes tables is set to, so that each reader sees the source's times."""

_EXCLUDED = "spark.sql.optimizer.excludedRules"
_INFERRED = "org.apache.spark.sql.catalyst.optimizer.InferFiltersFromConstraints"


def without_inferred_filters(spark: SparkSession) -> dict[str, str]:
    """Return the setting by which Spark adds no filter of its own, beside the user's exclusions.

    Spark asks of each column of a join's key whether it is null, and asks it as early as it can: in
    the filter that picks a table's records. Where two such questions read one JSON or Avro key, the
    filter reads it first (``spark.sql.subexpressionElimination``), of every table's records, and
    what is no key of this table fails the job.

    Rejected: to name the table in each expression that reads a record, so that it reads no other's.
    It would have to be carried through every fold, for a filter that spares these joins no row.
    """
    rules = {rule for rule in (spark.conf.get(_EXCLUDED, "") or "").split(",") if rule}
    return {_EXCLUDED: ",".join(sorted({*rules, _INFERRED}))}


def own_session(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """Return a copy of ``spark`` with ``settings``; jars, cache and running jobs are shared."""
    session: Any = spark
    if hasattr(spark, "_jsparkSession"):
        java_session = session._jsparkSession.cloneSession()  # noqa: SLF001 - this is the adapter
        copy = SparkSession(spark.sparkContext, java_session)
    else:
        copy = spark.newSession()
    for name, value in settings.items():
        copy.conf.set(name, value)
    return copy
