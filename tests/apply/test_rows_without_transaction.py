"""Rows that no transaction has, where each transaction gets a version of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.run import run_pipeline
from tests.apply.published import history
from tests.logs.written import WrittenLog, change, snapshot_row

pytestmark = [pytest.mark.slow, pytest.mark.soak]

UNAVAILABLE = "__debezium_unavailable_value"
EACH = {"commit_mode": "per-transaction", "table.public.a.schema": "id BIGINT, v STRING"}


def rows(spark: SparkSession, lake: Path) -> list[dict[int, str]]:
    """Return key and value of each publication's rows."""
    return [shown["public.a"] for shown in history(spark, lake).values()]


def test_a_row_of_an_incremental_snapshot_is_there_for_the_transactions_after_it(
    spark: SparkSession, log: WrittenLog, lake: Path
) -> None:
    # The first one makes the table, so those behind it are versions of one batch.
    log.transaction("1:100", replace(change("a", 100), v="first"))
    log.transaction("2:200", replace(change("a", 200), v="second"))
    log.put(snapshot_row("a", 9, "long", 200))
    log.transaction("3:300", replace(change("a", 300), v="third"))
    log.transaction("4:400", replace(change("a", 400), id=9, v=UNAVAILABLE))
    log.ingest(spark, lake, **EACH)
    assert rows(spark, lake) == [
        {1: "first"},
        {1: "second"},
        {1: "third", 9: "long"},
        {1: "third", 9: "long"},
    ]


def test_rows_can_be_hidden_where_the_session_writes_no_statistics(
    spark: SparkSession, log: WrittenLog, lake: Path
) -> None:
    for number, value in enumerate(("first", "second", "third"), 1):
        log.transaction(f"{number}:{number}00", replace(change("a", 100 * number), v=value))
    without = spark.newSession()
    without.conf.set("spark.databricks.delta.stats.collect", "false")
    run_pipeline(without, log.configured(lake, **EACH))
    assert rows(spark, lake) == [{1: "first"}, {1: "second"}, {1: "third"}]
