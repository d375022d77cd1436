"""Types of columns that nobody declared: the narrowest that reads every value."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from lakeingest.plan.inference import narrowest, readable_counts
from tests.decode.wire import event

COLUMNS: dict[str, tuple[list[Any], str]] = {
    "whole": ([1, -(2**63), 2**63 - 1], "int64"),
    "fraction late": ([1, 2, 2.5], "float64"),
    "text late": ([1, 2, "x"], "string"),
    "digits as text": (["1", "2", "3"], "string"),
    "yes or no": ([True, False, True], "boolean"),
    "number and boolean": ([1, True, 2], "string"),
    "null first": ([None, None, 7], "int64"),
    "never a value": ([None, None, None], "string"),
    "objects": ([{"a": 1}, {}, None], "string"),
    "arrays": ([[1], [], None], "string"),
}


def inferred(spark: SparkSession, columns: dict[str, list[Any]]) -> dict[str, str]:
    depth = max(len(values) for values in columns.values())
    texts = [event({name: values[n] for name, values in columns.items()}) for n in range(depth)]
    rows = spark.createDataFrame([(text,) for text in texts], "value string").coalesce(1)
    counts = readable_counts(rows, list(columns)).collect()[0].asDict()
    return {name: narrowest(counts, index) for index, name in enumerate(columns)}


def test_a_column_gets_the_narrowest_type_that_reads_every_value(spark: SparkSession) -> None:
    found = inferred(spark, {name: values for name, (values, _) in COLUMNS.items()})
    assert found == {name: kind for name, (_, kind) in COLUMNS.items()}


def test_an_integer_beyond_64_bits_is_not_rounded_to_a_double(spark: SparkSession) -> None:
    assert inferred(spark, {"n": [1, 2**64 + 1]}) == {"n": "string"}
