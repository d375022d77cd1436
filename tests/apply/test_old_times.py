"""A run writes times as they are, whatever its session says."""

from __future__ import annotations

from pyspark.sql import SparkSession

from lakeingest.apply.run_session import run_session
from lakeingest.engine.own_session import TIME_SETTINGS


def test_a_run_writes_times_as_they_are_whatever_the_users_session_says(
    spark: SparkSession,
) -> None:
    before = {name: spark.conf.get(name) for name in TIME_SETTINGS}
    own = run_session(spark)
    assert {name: own.conf.get(name) for name in TIME_SETTINGS} == TIME_SETTINGS
    assert {name: spark.conf.get(name) for name in TIME_SETTINGS} == before
