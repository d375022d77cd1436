"""How a batch's keys are looked up in a table that is much larger."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakeingest.payload import key_lookup
from lakeingest.payload.key_lookup import rows_of


def test_rows_of_few_keys_are_found_without_shuffling_the_table(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    table = spark.range(20).select("id", F.lit("wide").alias("body"))
    keys = spark.createDataFrame([(3,), (3,), (7,), (99,)], "id BIGINT")
    rows = rows_of(table, ["id"], keys, F.struct("id"), 4)
    assert sorted(row["id"] for row in rows.collect()) == [3, 7]
    rows.explain()
    plan = capsys.readouterr().out
    assert "BroadcastHashJoin" in plan
    assert "hashpartitioning" not in plan


def test_rows_of_many_keys_are_left_to_the_look_up(spark: SparkSession) -> None:
    table = spark.range(20)
    assert rows_of(table, ["id"], table, F.struct("id"), key_lookup.FEW + 1) is table
