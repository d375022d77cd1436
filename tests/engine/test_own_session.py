"""A session of our own knows what the user set, and tells nobody what we set."""

from __future__ import annotations

from pyspark.sql import SparkSession

from lakeingest.engine.own_session import own_session


def test_what_the_user_set_at_run_time_holds_in_our_session(spark: SparkSession) -> None:
    # On Databricks a notebook gives its storage credentials this way.
    spark.conf.set("fs.azure.account.key.lake", "given-at-run-time")
    try:
        assert own_session(spark, {}).conf.get("fs.azure.account.key.lake") == "given-at-run-time"
        assert spark.newSession().conf.get("fs.azure.account.key.lake", None) is None
    finally:
        spark.conf.unset("fs.azure.account.key.lake")


def test_what_we_set_does_not_reach_the_users_session(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.adaptive.enabled")
    ours = own_session(spark, {"spark.sql.adaptive.enabled": "false", "lakeingest.x": "1"})
    assert ours.conf.get("spark.sql.adaptive.enabled") == "false"
    assert spark.conf.get("spark.sql.adaptive.enabled") == before
    assert spark.conf.get("lakeingest.x", None) is None


def test_both_sessions_read_the_same_frames(spark: SparkSession) -> None:
    spark.range(3).createOrReplaceTempView("three_rows")
    assert own_session(spark, {}).table("three_rows").count() == 3
