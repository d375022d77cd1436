"""Columns that every batch needs are made once, and anew for another JVM."""

from __future__ import annotations

import pytest
from pyspark import SparkContext
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from lakeingest.engine.known_columns import made_once


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
