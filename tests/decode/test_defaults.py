"""What a records' schema tells of its columns besides their types: defaults, and whether NULL."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakeingest.decode.avro.columns import side_columns
from lakeingest.decode.avro.schema import AvroSchema
from lakeingest.decode.columns import SourceColumn, from_connect
from lakeingest.decode.defaults import Default, default_value, is_stand_in
from lakeingest.decode.types.logical import AVRO, JSON
from tests.decode.avro import envelope_schema, in_avro
from tests.decode.connect import DATE, MICROS, MILLIS, ZONED, array, decimal, semantic

CONNECT: Sequence[dict[str, Any]] = (
    decimal(5, 2, default="fQ=="),
    {**DATE, "default": 1},
    {**MICROS, "default": 1_500_000},
    {"type": "string", "default": 'it\'s "ä" \\ '},
    {"type": "boolean", "default": False},
    {"type": "double", "default": 0.1},
    {"type": "bytes", "default": "AP8="},
    {**array({"type": "string"}), "default": ["a", "b"]},
)
IN_AVRO: Sequence[tuple[Any, Any]] = (
    (in_avro(decimal(5, 2)), "}"),
    (in_avro(DATE), 1),
    (in_avro(MICROS), 1_500_000),
    ("string", 'it\'s "ä" \\ '),
    ("boolean", False),
    ("double", 0.1),
    ("bytes", "\u0000ÿ"),
    ({"type": "array", "items": "string"}, ["a", "b"]),
)
VALUES = (
    Decimal("1.25"),
    date(1970, 1, 2),
    datetime(1970, 1, 1, 0, 0, 1, 500_000),  # noqa: DTZ001 - a timestamp without zone
    'it\'s "ä" \\ ',
    False,
    0.1,
    bytearray(b"\x00\xff"),
    ["a", "b"],
)


def of_avro(*fields: dict[str, Any]) -> tuple[SourceColumn, ...]:
    return side_columns(AvroSchema.parse(json.dumps(envelope_schema(*fields))), AVRO)


@pytest.fixture(params=["json", "avro"])
def columns(request: pytest.FixtureRequest) -> tuple[SourceColumn, ...]:
    if request.param == "json":
        shown = ({**item, "field": f"c{n}", "optional": True} for n, item in enumerate(CONNECT))
        return from_connect(shown, JSON)
    fields = (
        {"name": f"c{n}", "type": [kind, "null"], "default": default}
        for n, (kind, default) in enumerate(IN_AVRO)
    )
    return of_avro(*fields)


def test_a_default_is_read_as_a_value_of_its_column_is(
    spark: SparkSession, columns: tuple[SourceColumn, ...]
) -> None:
    defaults = [default_value(column, Default(column.default or "")) for column in columns]
    (row,) = spark.range(1).select(*defaults).collect()
    assert tuple(row) == VALUES
    assert [is_stand_in(column) for column in columns] == [False] * len(columns)


def test_a_schema_tells_whether_a_column_may_be_null_and_that_it_has_no_default() -> None:
    avro = of_avro(
        {"name": "a", "type": ["null", "string"], "default": None}, {"name": "b", "type": "string"}
    )
    kinds = ({"field": name, "type": "string", "optional": name == "a"} for name in "ab")
    for shown in (avro, from_connect(kinds, JSON)):
        assert [(c.nullable, c.default) for c in shown] == [(True, None), (False, None)]


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        (DATE, 0),
        (MILLIS, 0),
        (ZONED, "1970-01-01T00:00:00Z"),
        (semantic("string", "data.Uuid"), "00000000-0000-0000-0000-000000000000"),
    ],
)
def test_epoch_and_the_zero_uuid_stand_for_expressions(kind: dict[str, Any], default: Any) -> None:
    (column,) = from_connect(({**kind, "field": "c", "default": default},), JSON)
    assert is_stand_in(column)


def test_a_default_that_no_lake_holds_goes_by_the_tables_policy(spark: SparkSession) -> None:
    (column,) = from_connect([{**DATE, "field": "until", "default": -2147472692}], JSON)
    values = [default_value(column, Default("-2147472692"), how) for how in ("edge", "null")]
    (row,) = spark.range(1).select(*values).collect()
    assert tuple(row) == (date(9999, 12, 31), None)
