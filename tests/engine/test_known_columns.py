"""Columns that every batch needs are made once, and anew for another JVM."""

from __future__ import annotations

import pytest
from pyspark import SparkContext
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from lakeingest.engine.known_columns import Addition, Filter, Removal, Selection, Steps, made_once


def test_a_column_is_made_once_for_the_same_arguments_and_jvm(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    @made_once
    def column(name: str, *, twice: bool = False) -> Column:
        made.append(name)
        return F.col(name) * (2 if twice else 1)

    first = column("id")
    assert column("id") is first
    assert column("id", twice=True) is not first
    assert spark.range(2).select(first, column("id")).collect() == [(0, 0), (1, 1)]
    assert made == ["id", "id"]
    monkeypatch.setattr(SparkContext, "_gateway", object())
    assert column("id") is not first


def test_a_patch_reaches_columns_that_were_made_before(monkeypatch: pytest.MonkeyPatch) -> None:
    @made_once
    def column() -> Column:
        return F.col(_NAME)

    first = column()
    assert column() is first
    monkeypatch.setattr(f"{__name__}._NAME", "other")
    assert column() is not first


_NAME = "id"


def test_a_column_as_an_argument_counts_by_identity(spark: SparkSession) -> None:
    @made_once
    def twice(value: Column, *, others: tuple[Column, ...] = ()) -> Column:
        return value * 2 + len(others)

    one, same_name = F.col("id"), F.col("id")
    assert twice(one) is twice(one)
    assert twice(one) is not twice(same_name)
    assert twice(one, others=(one,)) is twice(one, others=(one,))
    assert spark.range(2).select(twice(one, others=(one,))).collect() == [(1,), (3,)]


def test_an_argument_without_a_hash_makes_the_column_anew() -> None:
    @made_once
    def column(names: list[str]) -> Column:
        return F.col(names[0])

    assert column(["id"]) is not column(["id"])


def test_steps_do_what_the_frames_own_methods_do(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, "a", 2), (1, "b", 3), (2, "c", 4)], "k int, t string, n int")
    steps = Steps(
        Filter(F.col("t") != "b"),
        Addition({"m": F.col("n") + 1, "n": F.col("n") * 10}),
        Removal("t", "not there"),
    )
    for _ in range(2):
        assert steps.of(frame).collect() == [(1, 20, 3), (2, 40, 5)]
    selection = Selection("k", (F.col("n") * 2).alias("n"))
    joined = selection.of(frame).alias("a").join(selection.of(frame).alias("b"), "k")
    assert joined.select("a.n", "b.n").distinct().count() == 5
    assert selection.of(frame).union(selection.of(frame)).groupBy("k").count().count() == 2
    sums = Selection(F.sum("n").alias("n"), F.max("t").alias("t"))
    rows = sums.of_groups(frame, Selection("k")).orderBy("k").collect()
    assert rows == [(1, 5, "b"), (2, 4, "c")]
    assert sums.of_groups(frame, Selection()).collect() == [(9, "c")]
