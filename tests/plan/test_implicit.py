"""The zero that MySQL gives old rows of a NOT NULL column, where its type tells it."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakeingest.decode.columns import from_connect
from lakeingest.decode.defaults import Default, default_value
from lakeingest.decode.encodings import Encodings
from lakeingest.decode.types.logical import AVRO, JSON, JSON_NUMERIC, Form
from lakeingest.plan.implicit import implicit_value
from tests.decode.connect import DATE, decimal, semantic

ZEROS: dict[str, dict[str, Any]] = {
    "0": {"type": "int32"},
    "0.0": {"type": "double"},
    "0.00": decimal(10, 2),
    "": {"type": "string"},
    "false": {"type": "boolean"},
}
"""By what the lake shows."""

UNKNOWN: tuple[dict[str, Any], ...] = (
    DATE,
    semantic("string", "data.Enum"),
    semantic("string", "data.Json"),
    {"type": "bytes"},
)


@pytest.mark.parametrize("form", [JSON, AVRO, JSON_NUMERIC])
def test_numbers_and_text_have_a_zero_that_can_be_read(spark: SparkSession, form: Form) -> None:
    read = []
    for column in from_connect([{"field": shown, **item} for shown, item in ZEROS.items()], form):
        zero = implicit_value(column, Encodings())
        assert zero is not None
        read.append(default_value(column, Default(zero)).cast("string"))
    (row,) = spark.range(1).select(F.array(*read)).collect()
    assert row[0] == list(ZEROS)


def test_what_has_no_certain_zero_has_none() -> None:
    columns = from_connect([{"field": "a", **item} for item in UNKNOWN], JSON)
    assert [implicit_value(column, Encodings()) for column in columns] == [None] * len(UNKNOWN)
    (text,) = from_connect([{"field": "a", "type": "string"}], JSON)
    # A decimal may come as text.
    assert implicit_value(text, Encodings(decimal="string")) is None
