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
