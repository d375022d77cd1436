"""Count the Spark jobs of a session's context: what a small batch costs is the number of its jobs.

Adapter. Rejected: a listener, which would call Python for every job. Internal name, verified in
Spark 3.5: ``DAGScheduler.numTotalJobs``. Where there is no such name, nothing is counted.
"""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession


class JobCounter:
    """Counts the jobs of a context from one question to the next."""

    def __init__(self, spark: SparkSession) -> None:
        """Begin to count."""
        self._spark = spark
        self._before = _begun(spark)

    def since_last(self) -> int:
        """Return how many jobs have begun since the last call."""
        before, self._before = self._before, _begun(self._spark)
        return self._before - before


def _begun(spark: SparkSession) -> int:
    """Return how many jobs the context has begun, whoever asked for them; 0: it cannot be known."""
    if not hasattr(spark, "_jsparkSession"):
        return 0
    context: Any = spark.sparkContext
    try:
        return int(context._jsc.sc().dagScheduler().numTotalJobs())  # noqa: SLF001 - the adapter
    except Py4JError:
        return 0
