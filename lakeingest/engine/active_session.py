"""Make a session the thread's active one: Delta's classes read their settings from there.

Adapter: ``SparkSession.setActiveSession`` of the JVM. A thread of Python has a thread of the JVM,
whose active session may be another one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession


@contextmanager
def active(spark: SparkSession) -> Iterator[None]:
    """Make ``spark`` the thread's active session; afterwards, the one before is again."""
    session: Any = spark
    sessions = session._jvm.org.apache.spark.sql.SparkSession  # noqa: SLF001 - this is the adapter
    before = sessions.getActiveSession()
    sessions.setActiveSession(session._jsparkSession)  # noqa: SLF001
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()
