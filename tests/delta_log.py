"""Let Delta read a table's log anew, as another process does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession


def forget_log(spark: SparkSession, table: Path | str) -> None:
    """Take one table's log out of Delta's cache; those of other tests' tables stay."""
    session: Any = spark
    folder = session._jvm.org.apache.hadoop.fs.Path(str(table))
    session._jvm.org.apache.spark.sql.delta.DeltaLog.invalidateCache(session._jsparkSession, folder)
