"""Rows and keys of events: sides, absent fields, headers, odd column names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakeingest.decode.columns import SourceColumn
from lakeingest.decode.encodings import Encodings
from lakeingest.decode.json.rows import JsonRows
from lakeingest.decode.row import RowSpec, moved_from_part, with_key, with_parts, with_row
from lakeingest.decode.types.logical import JSON, PRIMITIVES
from lakeingest.decode.types.octets import binary
from lakeingest.decode.types.temporal import DATE

INT, TEXT = PRIMITIVES["int32"], PRIMITIVES["string"]
COLUMNS = [SourceColumn("id", INT), SourceColumn("v", TEXT), SourceColumn("odd.name", TEXT)]


def text_of(value: Any, *, schema: bool = False) -> str:
    inside = {"schema": {"type": "struct", "fields": []}, "payload": value} if schema else value
    return json.dumps(inside, separators=(",", ":"))


def octets(texts: Sequence[str | None]) -> list[tuple[int, bytes | None]]:
    return [(index, None if text is None else text.encode()) for index, text in enumerate(texts)]


def test_a_row_is_read_from_the_side_that_is_there(spark: SparkSession) -> None:
    row = {"id": 1, "v": "x", "odd.name": "y", "unknown": {"deep": 1}}
    texts = [
        text_of({"before": None, "after": row}),
        text_of({"before": row, "after": None}),
        text_of({"after": {"id": 2}}),
        None,
    ]
    frame = spark.createDataFrame(octets(texts), "_index int, value binary").coalesce(1)
    spec = RowSpec(COLUMNS, Encodings(), JsonRows())
    after = with_row(frame, spec, masked=False)
    rows = [r["row"] and tuple(r["row"]) for r in after.orderBy("_index").collect()]
    assert rows == [(1, "x", "y"), None, (2, None, None), None]
    either = with_row(frame, spec, masked=False, sides=("after", "before"))
    assert tuple(either.where("_index = 1").collect()[0]["row"]) == (1, "x", "y")


def test_a_key_is_read_where_there_is_one(spark: SparkSession) -> None:
    texts = [text_of({"id": 1, "v": "x"}), None]
    frame = spark.createDataFrame(octets(texts), "_index int, key binary").coalesce(1)
    keyed = with_key(frame, COLUMNS[:2], "key_row", JsonRows())
    keys = [r["key_row"] and tuple(r["key_row"]) for r in keyed.orderBy("_index").collect()]
    assert keys == [(1, "x"), None]
    null = spark.createDataFrame(octets([text_of({"id": None, "v": "x"})]), frame.schema)
    with pytest.raises(Exception, match="column 'id': NULL in a column of the key"):
        with_key(null, COLUMNS[:2], "key_row", JsonRows()).collect()


def with_old_key(frame: DataFrame, *columns: SourceColumn) -> DataFrame:
    return with_parts(frame, moved_from_part(columns, "key_row", JsonRows()))


def test_the_key_a_row_moved_from_is_read_with_a_schema_and_without(spark: SparkSession) -> None:
    key = {"id": 1, "v": "x"}
    texts = [text_of(key), text_of(key, schema=True), None]
    frame = spark.createDataFrame(list(enumerate(texts)), "_index int, moved_from string")
    keyed = with_old_key(frame.coalesce(1), *COLUMNS[:2])
    keys = [r["key_row"] and tuple(r["key_row"]) for r in keyed.orderBy("_index").collect()]
    assert keys == [(1, "x"), (1, "x"), None]


def test_the_old_key_is_read_as_the_default_converter_of_headers_writes_it(
    spark: SparkSession,
) -> None:
    # SimpleHeaderConverter: a quote and a backslash are escaped, a line's end is not.
    text = '{"v":"two\nlines \\"and\\" \\\\","id":-7}'
    keyed = with_old_key(spark.createDataFrame([(text,)], "moved_from string"), *COLUMNS[:2])
    assert tuple(keyed.collect()[0]["key_row"]) == (-7, 'two\nlines "and" \\')


def test_a_header_whose_text_may_mean_two_keys_is_not_believed(spark: SparkSession) -> None:
    # A number, base64 of one, a date as the default converter writes it.
    texts = [('{"n":1234}',), ('{"n":"1234"}',), ('{"n":2026-01-02}',)]
    frame = spark.createDataFrame(texts, "moved_from string")
    for kind in (JSON.decimal(20, 0), DATE, binary()):
        assert with_old_key(frame, SourceColumn("n", kind)).where("key_row IS NOT NULL").isEmpty()


def test_a_key_column_named_schema_is_no_schema(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(text_of({"schema": "public", "id": 1}),)], "moved_from string")
    keyed = with_old_key(frame, SourceColumn("schema", TEXT), SourceColumn("id", INT))
    assert tuple(keyed.select(F.col("key_row.*")).collect()[0]) == ("public", 1)
