"""Whether Delta's log is fenced is told by the path's scheme and by Spark's settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.factory import refuse_unfenced
from lakeingest.apply.inspect.validate import validate_pipeline
from lakeingest.apply.run import run_pipeline
from lakeingest.config import load_config
from lakeingest.engine.delta.log_store import fences, log_store, log_store_of
from lakeingest.engine.own_session import own_session
from lakeingest.errors import ConfigError
from tests.config.settings import RECORDED

DYNAMO = "io.delta.storage.S3DynamoDBLogStore"
GUARANTEED = {"lakeingest.single.writer": "guaranteed"}


def fenced(scheme: str, settings: Mapping[str, str]) -> bool:
    return fences(scheme, log_store(scheme, lambda key: settings.get(key)))


@pytest.mark.parametrize("scheme", ["file", "hdfs", "abfss", "gs"])
def test_a_storage_that_creates_a_file_once_fences_by_itself(scheme: str) -> None:
    assert fenced(scheme, {})


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n", "oss", "unheard-of"])
def test_an_object_store_does_not_fence_by_itself(scheme: str) -> None:
    assert not fenced(scheme, {})


@pytest.mark.parametrize(
    ("key", "store", "expected"),
    [
        ("spark.delta.logStore.s3a.impl", DYNAMO, True),
        ("spark.delta.logStore.s3.impl", DYNAMO, False),
        ("spark.delta.logStore.class", DYNAMO, True),
        ("spark.delta.logStore.s3a.impl", "com.example.ConditionalLogStore", True),
        # A rename of S3A's is a copy, whoever calls it.
        ("spark.delta.logStore.s3a.impl", "io.delta.storage.HDFSLogStore", False),
        (
            "spark.delta.logStore.class",
            "org.apache.spark.sql.delta.storage.S3SingleDriverLogStore",
            False,
        ),
    ],
)
def test_a_log_store_that_the_user_names_is_the_one_that_counts(
    key: str, store: str, expected: bool
) -> None:
    assert fenced("s3a", {key: store}) is expected


def test_what_is_set_in_a_running_session_does_not_count(spark: SparkSession) -> None:
    """Delta reads the settings that Spark was started with."""
    session = own_session(spark, {"spark.delta.logStore.s3a.impl": DYNAMO})
    assert log_store_of(session, "s3a://x/y") == ("s3a", "io.delta.storage.S3SingleDriverLogStore")
    assert log_store_of(session, "/x/y") == ("file", "io.delta.storage.LocalLogStore")


def test_the_default_of_each_scheme_is_delta_s_own(spark: SparkSession) -> None:
    session: Any = spark
    java = session._jvm.org.apache.spark.sql.delta.storage.DelegatingLogStore  # noqa: SLF001
    for scheme in ("s3", "s3a", "s3n", "abfs", "abfss", "adl", "wasb", "wasbs", "gs", "hdfs"):
        class_name = java.getDefaultLogStoreClassName(scheme)
        expected = class_name.get() if class_name.isDefined() else "io.delta.storage.HDFSLogStore"
        assert log_store(scheme, lambda _: None) == expected


@pytest.fixture
def unfenced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the local disk a storage on which two drivers commit the same version."""
    monkeypatch.setattr("lakeingest.engine.delta.log_store._ATOMIC", frozenset())


def settings(tmp_path: Path, **more: str) -> dict[str, str]:
    return {**RECORDED, "lakeingest.target.path": str(tmp_path / "lake"), **more}


@pytest.mark.usefixtures("unfenced")
def test_a_run_that_nothing_fences_stops_before_it_writes(
    spark: SparkSession, tmp_path: Path
) -> None:
    config = load_config({**settings(tmp_path), "lakeingest.source.path": str(tmp_path)})
    with pytest.raises(ConfigError, match="Nothing fences a second driver.*spark.delta.logStore"):
        run_pipeline(spark, config)
    with pytest.raises(ConfigError, match="lakeingest.single.writer=guaranteed"):
        validate_pipeline(spark, config)
    assert not (tmp_path / "lake").exists()


def test_who_sees_to_one_writer_is_told_what_he_has_taken_on(spark: SparkSession) -> None:
    on_s3 = {**RECORDED, "lakeingest.target.path": "s3a://bucket/lake"}
    (warning,) = refuse_unfenced(spark, load_config({**on_s3, **GUARANTEED}))
    assert "'s3a://bucket/lake'" in warning
    assert "S3SingleDriverLogStore" in warning
    assert refuse_unfenced(spark, load_config(RECORDED | GUARANTEED)) == ()


def test_a_table_in_another_storage_than_the_lake_is_looked_at_too(spark: SparkSession) -> None:
    elsewhere = {"lakeingest.table.public.orders.path": "s3a://bucket/orders"}
    with pytest.raises(ConfigError, match="'s3a://bucket/orders'"):
        refuse_unfenced(spark, load_config({**RECORDED, **elsewhere}))
    hudi = {**elsewhere, "lakeingest.table.public.orders.format": "hudi"}
    assert refuse_unfenced(spark, load_config({**RECORDED, **hudi})) == ()
