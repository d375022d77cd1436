"""Create a separate Spark session, so that its settings do not change the user's session.

Adapter. The JVM's ``cloneSession`` keeps settings and temporary views
(``org.apache.spark.sql.SparkSession``, Spark 3 and 4). Rejected: ``newSession()``. It drops the
settings that the user made at run time, and a Databricks notebook gives its storage credentials in
this way. Where there is no JVM gateway (Spark Connect), the server keeps the settings, and
``newSession`` is the only choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

TIME_SETTINGS = {
    # Otherwise Spark refuses to write dates before 1582 and timestamps before 1900: it can't know
    # whether readers use the Julian calendar. Readers of Delta and Hudi never use it.
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.avro.datetimeRebaseModeInWrite": "CORRECTED",
    # For files that do not name their writer (those of Hudi and delta-rs); other files name it.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.avro.datetimeRebaseModeInRead": "CORRECTED",
    # Other engines read Spark's INT96 as nanoseconds, which cover only the years 1677 to 2262.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
"""Settings of a session that writes tables, so that every reader sees the source's times."""

_EXCLUDED_RULES = "spark.sql.optimizer.excludedRules"
_INFER_FILTERS_RULE = "org.apache.spark.sql.catalyst.optimizer.InferFiltersFromConstraints"


def without_inferred_filters(spark: SparkSession) -> dict[str, str]:
    """Return a setting that keeps Spark from inferring filters.

    For each column of a join key, Spark infers a filter ``IS NOT NULL`` and applies it as early as
    possible: in the filter that selects a table's records. When two inferred filters parse the same
    JSON or Avro key, Spark parses the key first (``spark.sql.subexpressionElimination``), in the
    records of every table. The key of another table's record then fails the job.

    Rejected: to add the table to each expression that parses a record, so that it parses only this
    table's records. Every fold would have to carry the table, for a filter that removes no row
    from these joins.

    Returns:
        The excluded optimizer rules: those that the user excludes, and the rule that infers
        filters.
    """
    rules = {rule for rule in (spark.conf.get(_EXCLUDED_RULES, "") or "").split(",") if rule}
    return {_EXCLUDED_RULES: ",".join(sorted({*rules, _INFER_FILTERS_RULE}))}


def own_session(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """Return a copy of ``spark`` with ``settings``; both share jars, cache and running jobs."""
    session: Any = spark
    if hasattr(spark, "_jsparkSession"):
        java_session = session._jsparkSession.cloneSession()  # noqa: SLF001 - this is the adapter
        copy = SparkSession(spark.sparkContext, java_session)
    else:
        copy = spark.newSession()
    for name, value in settings.items():
        copy.conf.set(name, value)
    return copy
