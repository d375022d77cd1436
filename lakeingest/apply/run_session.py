"""Open the Spark session in which a run, a retirement or an adoption works."""

from __future__ import annotations

from pyspark.sql import SparkSession

from lakeingest.engine.own_session import TIME_SETTINGS, own_session, without_inferred_filters
from lakeingest.engine.remembered_names import remember_names

_FILE_LIST = "spark.databricks.delta.allFilesInCrc.thresholdNumFiles"
_LISTED_FILES = 100
"""Number of data files up to which Delta lists them with each version (its default: 50).

A version whose files are listed is written and read without a job that looks for them
(``engine/delta/files.py``). The list is part of each version's checksum file: some kB per file.
"""

_OPEN_COST = "spark.sql.files.openCostInBytes"
_SMALL_OPEN_COST = str(64 * 1024)
"""Size that Spark adds to each file when it divides files among tasks (its default: 4 MiB).

With the default, a task takes 32 small files at most, and each task makes code to read them: a
checkpoint after 500 commits took 26 s in a young JVM and 6 s later, with this 9 s and 5 s (two
cores, measured). On many cores the number of cores divides the files, with either.
"""

_STATISTICS = {"spark.databricks.delta.stats.collect": "true"}
"""Each new file says how many rows it has, without which none of them can be hidden."""

_HANDFUL = 16
"""Number of shuffle partitions up to which adaptive execution is off."""


def run_session(spark: SparkSession) -> SparkSession:
    """Return a session of its own for a run, without adaptive execution where that gains little.

    Adaptive execution plans again after every stage, to join hundreds of shuffle partitions. With
    few of them, a small MERGE takes 15 % less without it (1.4 s against 1.6 s, measured).

    The session's time zone is UTC, whatever the user's is: the text of a timestamp is part of
    Hudi's record keys and of the hash of a row without a key, and two timestamps have the same text
    when clocks go back. The session also fixes how times are written: a platform's session refuses
    old ones.
    """
    remember_names(spark)
    partitions = spark.conf.get("spark.sql.shuffle.partitions") or ""
    few_partitions = partitions.isdigit() and int(partitions) <= _HANDFUL
    adaptive = {"spark.sql.adaptive.enabled": "false"} if few_partitions else {}
    settings = {
        **TIME_SETTINGS,
        **without_inferred_filters(spark),
        **adaptive,
        **_unless_set(spark, _FILE_LIST, str(_LISTED_FILES)),
        **_unless_set(spark, _OPEN_COST, _SMALL_OPEN_COST),
        **_STATISTICS,
    }
    return own_session(spark, {"spark.sql.session.timeZone": "UTC", **settings})


def _unless_set(spark: SparkSession, key: str, value: str) -> dict[str, str]:
    return {} if spark.conf.get(key, None) else {key: value}
