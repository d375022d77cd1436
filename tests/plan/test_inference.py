"""Types of columns that nobody declared: the narrowest that reads every value."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from lakeingest.plan.inference import InferredType, narrowest, readable_counts
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


def inferred(spark: SparkSession, columns: dict[str, list[Any]]) -> dict[str, InferredType]:
    depth = max(len(values) for values in columns.values())
    padded = {name: values + [None] * (depth - len(values)) for name, values in columns.items()}
    texts = [event({name: values[n] for name, values in padded.items()}) for n in range(depth)]
    rows = spark.createDataFrame([(text,) for text in texts], "value string").coalesce(1)
    counts = readable_counts(rows, list(columns)).collect()[0].asDict()
    return {name: narrowest(counts, index) for index, name in enumerate(columns)}


def test_a_column_gets_the_narrowest_type_that_reads_every_value(spark: SparkSession) -> None:
    inferences = inferred(spark, {name: values for name, (values, _) in COLUMNS.items()})
    kinds = {name: inferred.kind for name, inferred in inferences.items()}
    assert kinds == {name: kind for name, (_, kind) in COLUMNS.items()}


def test_an_integer_beyond_64_bits_is_not_rounded_to_a_double(spark: SparkSession) -> None:
    assert inferred(spark, {"n": [1, 2**64 + 1]})["n"].kind == "string"


GUESSES: dict[str, list[Any]] = {
    "epoch days": [19_000, 19_001],
    "an id or a date before 1973": [1, 2],
    "decimal in base64": ["C4vo", "AQ=="],
    "four letters": ["open", None, "paid"],
    "decimal as text": ["12.50", "-3", "1E+3"],
    "zoned timestamp": ["2024-02-29T12:00:00Z", "-0044-03-15T00:00:00Z"],
    "zoned time": ["12:00:00Z"],
    "variable scale decimal": [{"scale": 2, "value": "C4vo"}],
    "array": [[1], []],
    "empty text or no bytes": ["", ""],
    "bytes in hexadecimal digits": ["deadbe", "00"],
    "bytes in base64 for addresses": ["-_8=", "C4vo"],
    "decimals as text, some of them none": ["NaN", "1.5", "-Infinity"],
    "lines in JSON": ['{"a":\n1}'],
    "never a value": [None],
}
CERTAIN: dict[str, list[Any]] = {
    "words": ["four", "and five"],
    "base64 and one that is not": ["C4vo", "C4v"],
    "lines": ["2024\n2025 x"],
    "yes or no": [True, False],
    "fractions": [1.5, 2],
}


def test_a_type_is_certain_only_if_some_value_can_be_of_no_other(spark: SparkSession) -> None:
    inferences = inferred(spark, {**GUESSES, **CERTAIN})
    assert {name for name, inferred in inferences.items() if inferred.certain} == set(CERTAIN)
