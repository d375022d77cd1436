"""Classes that PySpark asks the JVM for by name at every call, remembered.

Adapter. ``F.col("x")`` makes py4j resolve the name ``functions`` anew, and the JVM looks through
all jars for it in each imported package: 0.5 ms of a call's 0.6 ms (measured; a batch makes some
hundreds). What an attribute of the gateway's view already is is not asked for again.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

_NAMES = ("functions", "PythonUtils")
"""What ``pyspark.sql.functions`` and ``pyspark.sql.column`` reach through the view."""


def remember_names(spark: SparkSession) -> None:
    """Keep the classes; without effect where there is no JVM gateway (Spark Connect)."""
    if hasattr(spark, "_jsparkSession"):
        session: Any = spark
        for name in _NAMES:
            setattr(session._jvm, name, getattr(session._jvm, name))  # noqa: SLF001
