"""YugabyteDB's wrapped columns are refused, and nothing that only looks a little like them is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.cells import refuse_cells
from lakeingest.decode.columns import Encodings, declared
from lakeingest.errors import ConfigError
from lakeingest.plan.spec import TableSpec


def table(spark: SparkSession, ddl: str) -> TableSpec:
    columns = declared(spark.createDataFrame([], ddl).schema, Encodings())
    return TableSpec("public.a", columns, ("id",))


def record(**after: Any) -> bytes:
    return json.dumps({"after": after}).encode()


def cell(value: object) -> dict[str, object]:
    return {"value": value, "set": True}


@pytest.mark.parametrize(
    ("ddl", "sample"),
    [
        ("id BIGINT, name STRING", record(id=cell(1), name=cell("x"))),
        ("id BIGINT, name STRING", record(id=cell(1), name=None)),
        ("id STRUCT<value: BIGINT, `set`: BOOLEAN>", None),
    ],
)
def test_cells_are_refused_with_the_plugin_that_sends_none(
    spark: SparkSession, ddl: str, sample: bytes | None
) -> None:
    with pytest.raises(ConfigError, match=r"plugin\.name=pgoutput"):
        refuse_cells(table(spark, ddl), [sample])


@pytest.mark.parametrize(
    "sample",
    [
        None,
        b"",
        b"\x00\x00\x00\x00\x07",
        b'{"after":null}',
        b"[]",
        record(),
        record(id=None),
        record(id=1, name="x"),
        record(id=1, pair=cell(1)),
        record(id={"value": 1, "set": True, "more": 1}),
    ],
)
def test_plain_rows_are_let_through(spark: SparkSession, sample: bytes | None) -> None:
    refuse_cells(table(spark, "id BIGINT, pair STRUCT<value: BIGINT, more: BIGINT>"), [sample])
