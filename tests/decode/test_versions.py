"""Records of two versions of a table in one batch: each is read by its own schema."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import permutations, product
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType, DoubleType, LongType, StringType

from lakeingest.decode.avro.format import AvroFormat
from lakeingest.decode.columns import SourceColumn, from_connect, merge_versions
from lakeingest.decode.encodings import Encodings
from lakeingest.decode.json.format import CarriedSchema, JsonFormat
from lakeingest.decode.json.rows import JsonRows
from lakeingest.decode.row import RowSpec, with_key, with_row
from lakeingest.decode.types.logical import AVRO, JSON, PRIMITIVES, declared_type
from lakeingest.decode.types.logical_type import as_narrower_type
from lakeingest.decode.types.versions import stored_as
from lakeingest.decode.wire import Samples, TableShape
from lakeingest.widening import casts
from tests.decode.avro import envelope_schema, event, field, in_avro, parsed, record, record_schema
from tests.decode.connect import (
    DATE,
    MICRO_TIME,
    MICROS,
    MILLIS,
    VARIABLE,
    array,
    decimal,
    semantic,
    struct,
)
from tests.decode.wire import minimal_width
from tests.forms import further


def unscaled(value: int) -> bytes:
    return value.to_bytes(minimal_width(value), "big", signed=True)


DAY = {"year": 2026, "month": 1, "day": 3}
TEXT = {"type": "string"}
AT, SHOWN_AT = 1767357000500, "2026-01-02 12:30:00.5"
Told = tuple[dict[str, Any], Any]
CHANGED: dict[str, tuple[Told, Told, tuple[str, str]]] = {
    "wider": (
        (decimal(10, 2), unscaled(150)),
        (decimal(12, 4), unscaled(15_000)),
        ("1.5000", "1.5000"),
    ),
    "whole": ((decimal(5, 2), unscaled(150)), (decimal(9, 2), unscaled(151)), ("1.50", "1.51")),
    "large": (
        (decimal(50, 2), unscaled(-150)),
        (decimal(60, 4), unscaled(-15_000)),
        ("-1.50", "-1.5000"),
    ),
    "at": ((MILLIS, AT), (MICROS, AT * 1000), (SHOWN_AT, SHOWN_AT)),
    "ats": (
        (array(MILLIS), [AT]),
        (array(MICROS), [AT * 1000]),
        (f"[{SHOWN_AT}]", f"[{SHOWN_AT}]"),
    ),
    "time": (
        (semantic("int32", "time.Time"), 45_000_500),
        (MICRO_TIME, 45_000_500_001),
        ("12:30:00.500000", "12:30:00.500001"),
    ),
    "count": (({"type": "int32"}, -1), ({"type": "int64"}, 2**40), ("-1", str(2**40))),
    "single": (
        ({"type": "float"}, 0.1),
        ({"type": "double"}, 0.1),
        ("0.10000000149011612", "0.1"),
    ),
    "mode": (
        (MICROS, AT * 1000),
        (semantic("string", "time.IsoTimestamp"), "2026-01-02T12:30:00.5Z"),
        (SHOWN_AT, SHOWN_AT),
    ),
    "day": (
        (DATE, 20455),
        (struct("time.StructuredDate", year="int32", month="int8", day="int8"), DAY),
        ("2026-01-02", "2026-01-03"),
    ),
    "any": (
        (VARIABLE, {"scale": 1, "value": unscaled(150)}),
        (TEXT, '{"a": 1}'),
        ("15.0", '{"a": 1}'),
    ),
    "digits": ((decimal(50, 2), unscaled(150)), (TEXT, "1.5"), ("1.50", "1.5")),
    "note": ((TEXT, "a"), (semantic("string", "data.Json"), "{}"), ("a", "{}")),
}
"""Type and value of a column in the first version and in the second; both in the lake, as text."""


def in_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: in_json(item) for name, item in value.items()}
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


Version = Sequence[tuple[str, Mapping[str, Any], Any]]
"""Columns of a version: name, type, value."""


def written(form: str, versions: Sequence[Version]) -> tuple[TableShape, list[tuple[bytes, bytes]]]:
    """Write a record of each version; return what they show, and key and value of each."""
    records = []
    if form == "avro":
        schemas: dict[int, Any] = {}
        for at, version in enumerate(versions):
            fields = [field(name, in_avro(kind)) for name, kind, _ in version]
            row = {name: value for name, _, value in version}
            of_value, of_key = envelope_schema(*fields), record_schema("Key", fields[0])
            schemas |= {at + 1: of_value, at + 11: of_key}
            key = record(at + 11, of_key, {version[0][0]: version[0][2]})
            records.append((key, record(at + 1, of_value, event(row))))
        sides = zip(*records, strict=True)
        key_tags, tags = (frozenset(octets[:5] for octets in side) for side in sides)
        avro = AvroFormat(parsed(schemas), AVRO.with_policy("string"))
        return avro.table_shape(Samples(value_tags=tags, key_tags=key_tags)), records
    carried = {}
    for at, version in enumerate(versions):
        name = f"{at:016X}"
        fields = [{"field": name, **kind} for name, kind, _ in version]
        carried[name.encode()] = CarriedSchema(at, from_connect(fields, JSON.with_policy("string")))
        row = {name: in_json(value) for name, _, value in version}
        key = json.dumps({version[0][0]: row[version[0][0]]}).encode()
        records.append((key, described(name, row)))
    bare = tuple(value for _, value in records)
    samples = Samples(bare, (records[0][0],), frozenset(carried))
    return JsonFormat(carried).table_shape(samples), records


def described(schema: str, after: Mapping[str, Any]) -> bytes:
    """Return the JSON of a row whose schema has this name."""
    text = json.dumps({"schema": schema, "before": None, "after": after}, separators=(",", ":"))
    return text.encode()


def read(
    spark: SparkSession, column: SourceColumn, *values: tuple[str, int], plain: str = ""
) -> list[str]:
    """Return ``n`` of rows: the digit of which a schema's name consists, and the unscaled value.

    Where the schema's name is ``plain``, the value is a number.
    """
    wire = [(digit, n if digit == plain else in_json(unscaled(n))) for digit, n in values]
    return [str(n) for n in stored_values(spark, column, *wire)]


def stored_values(spark: SparkSession, column: SourceColumn, *wire: tuple[str, Any]) -> list[Any]:
    """Return ``n`` of rows: the digit of which a schema's name consists, and the value in JSON."""
    octets = [(described(digit * 16, {"n": value}),) for digit, value in wire]
    frame = spark.createDataFrame(octets, "value binary").coalesce(1)
    rows = with_row(frame, RowSpec([column], Encodings(), JsonRows()), masked=False).collect()
    return [row["row"]["n"] for row in rows]


def of_kind(name: str, kind: Mapping[str, Any]) -> tuple[SourceColumn, ...]:
    return from_connect([{"field": name, **kind}], JSON)


@pytest.mark.parametrize(
    ("form", "newer"),
    [
        ("json", 1),
        pytest.param("avro", 0, marks=pytest.mark.generated),
        further("json", 0),
        further("avro", 1),
    ],
)
def test_each_record_of_a_batch_is_read_by_its_own_schema(
    spark: SparkSession, form: str, newer: int
) -> None:
    first = [(name, *change[0]) for name, change in CHANGED.items()]
    second = [(name, *change[1]) for name, change in CHANGED.items()]
    versions = (first, second) if newer else (second, first)
    shown, records = written(form, versions)
    frame = spark.createDataFrame(records, "key binary, value binary").coalesce(1)
    decoded = with_row(frame, RowSpec(shown.columns, Encodings(), shown.reader), masked=True)
    texts = (F.col(f"row.{name}").cast("string").alias(name) for name in CHANGED)
    rows = [row.asDict() for row in decoded.select(*texts).collect()]
    expected = [{name: change[2][at] for name, change in CHANGED.items()} for at in (0, 1)]
    assert rows == (expected if newer else expected[::-1])
    assert {c.name: c.type.spark for c in shown.columns}["wider"] == DecimalType(12, 4)


@pytest.mark.parametrize("form", ["json", "avro"])
def test_each_key_of_a_batch_is_read_by_its_own_schema(spark: SparkSession, form: str) -> None:
    old, new = decimal(10, 2), decimal(12, 4)
    shown, records = written(form, ([("id", old, unscaled(150))], [("id", new, unscaled(150))]))
    assert not shown.reader.bare_keys
    frame = spark.createDataFrame(records, "key binary, value binary").coalesce(1)
    keyed = with_key(frame, shown.columns, "key_row", shown.reader)
    assert [str(row["key_row"]["id"]) for row in keyed.collect()] == ["1.5000", "0.0150"]


def test_what_is_read_alike_in_all_versions_has_one_conversion() -> None:
    numbers = (decimal(10, 2), decimal(12, 2))
    for kinds in (numbers, ({"type": "int16"}, {"type": "int64"}), (MICROS, MICROS)):
        versions = [of_kind("c", kind) for kind in kinds]
        (column,) = merge_versions({b"1": versions[0], b"2": versions[1]})
        assert column.type is versions[1][0].type
        assert column.type.versions == ()


def test_a_float_is_read_apart_from_doubles_only_where_it_is_written_in_digits() -> None:
    kinds = ("float32", "float64")
    for form, versions in ((JSON, 2), (AVRO, 0)):
        float_, double = (from_connect([{"field": "c", "type": kind}], form) for kind in kinds)
        (column,) = merge_versions({b"1": float_, b"2": double})
        assert (column.type.spark, len(column.type.versions)) == (DoubleType(), versions)


def test_a_declared_type_is_made_of_each_version_by_itself(spark: SparkSession) -> None:
    old, new = of_kind("n", decimal(10, 2)), of_kind("n", decimal(12, 4))
    (column,) = merge_versions({b"0" * 16: old, b"1" * 16: new})
    as_text = declared_type(column.type, PRIMITIVES["string"])
    assert as_text is not None
    assert as_text.spark == StringType()
    assert read(spark, SourceColumn("n", as_text), ("0", 150), ("1", 150)) == ["1.50", "0.0150"]


@pytest.mark.parametrize("new", [decimal(12, 2), {"type": "double"}])
def test_an_old_number_is_read_by_its_own_schema_where_the_new_type_is_declared(
    spark: SparkSession, new: Mapping[str, Any]
) -> None:
    """The text of 1234 is base64, too: three octets of another decimal."""
    was, becomes = of_kind("n", {"type": "int32"}), of_kind("n", new)
    (column,) = merge_versions({b"0" * 16: was, b"1" * 16: becomes})
    declared = declared_type(column.type, becomes[0].type)
    assert declared is not None
    assert declared.spark == becomes[0].type.spark
    numbers = read(spark, SourceColumn("n", declared), ("0", 1234), plain="0")
    assert [float(n) for n in numbers] == [1234]
    # Nobody knows which of the two values a number is.
    assert declared_type(column.type, PRIMITIVES["boolean"]) is None
    assert declared_type(was[0].type, becomes[0].type) is not None


@pytest.mark.parametrize(("old", "new"), [({"type": "int64"}, MICROS), (TEXT, {"type": "bytes"})])
def test_an_old_value_is_not_read_in_the_unit_of_the_new_type_that_is_declared(
    old: Mapping[str, Any], new: Mapping[str, Any]
) -> None:
    (was,), (becomes,) = of_kind("n", old), of_kind("n", new)
    (column,) = merge_versions({b"1": [was], b"2": [becomes]})
    assert declared_type(column.type, becomes.type) is None
    # What all records carry may be what the user says.
    assert declared_type(was.type, becomes.type) is becomes.type


def test_types_that_look_the_same_but_read_other_versions_are_read_apart(
    spark: SparkSession,
) -> None:
    old, new = of_kind("n", decimal(10, 2)), of_kind("n", decimal(12, 4))
    both = merge_versions({b"0" * 16: old, b"1" * 16: new})
    swapped = merge_versions({b"1" * 16: old, b"0" * 16: new})
    texts = []
    for (column,) in (new, both, swapped):
        narrow = SourceColumn("n", as_narrower_type(column.type, DecimalType(10, 2)))
        texts += read(spark, narrow, ("0", 15_000))
    assert texts == ["1.50", "150.00", "1.50"]


def test_a_value_that_the_common_type_does_not_hold_stops(spark: SparkSession) -> None:
    old, new = of_kind("n", decimal(10, 4)), of_kind("n", decimal(10, 0))
    (column,) = merge_versions({b"0" * 16: old, b"1" * 16: new})
    assert column.type.spark == DecimalType(10, 0)
    assert read(spark, column, ("0", 20_000)) == ["2"]
    with pytest.raises(Exception, match="a value is not a decimal"):
        read(spark, column, ("0", 15_000))


def test_of_types_that_do_not_widen_the_newest_is_the_columns() -> None:
    kinds = [of_kind("n", kind) for kind in ({"type": "int32"}, TEXT, MICROS)]
    for old, new in permutations(kinds, 2):
        (column,) = merge_versions({b"1": old, b"2": new})
        assert column.type.spark == new[0].type.spark


def test_a_value_that_spark_cannot_cast_to_the_lakes_type_stops_and_no_other_one_does(
    spark: SparkSession,
) -> None:
    old, new = of_kind("n", {"type": "int64"}), of_kind("n", MICROS)
    (column,) = merge_versions({b"0" * 16: old, b"1" * 16: new})
    lake_column = replace(column, type=stored_as(column.type, LongType()))
    assert stored_values(spark, lake_column, ("0", 5), ("1", None)) == [5, None]
    with pytest.raises(Exception, match="a value is not a bigint, its type in the lake"):
        stored_values(spark, lake_column, ("1", AT))


def test_a_struct_is_stored_by_the_names_of_its_fields_and_loses_none_that_has_a_value(
    spark: SparkSession,
) -> None:
    part, more = struct("data.Part", a="int32"), struct("data.Part", b="int32", a="int32")
    old, new = of_kind("n", part), of_kind("n", more)
    (column,) = merge_versions({b"0" * 16: old, b"1" * 16: new})
    fit = ("0", {"a": 1}), ("1", {"a": 2}), ("1", None)
    unfit = ("1", {"a": 3, "b": 4})
    assert stored_values(spark, column, *fit, unfit) == [(None, 1), (None, 2), None, (4, 3)]
    lake_column = replace(column, type=stored_as(column.type, old[0].type.spark))
    assert stored_values(spark, lake_column, *fit) == [(1,), (2,), None]
    with pytest.raises(Exception, match="a value is not a struct<a:int>, its type in the lake"):
        stored_values(spark, lake_column, unfit)


def test_the_known_casts_are_those_of_spark(spark: SparkSession) -> None:
    names = ["tinyint", "bigint", "double", "decimal(9,2)", "string", "binary", "boolean", "date"]
    names += ["timestamp", "timestamp_ntz", "array<int>", "array<date>"]
    kinds = spark.sql(f"SELECT {', '.join(f'CAST(NULL AS {name})' for name in names)}").schema
    for (source, one), (target, other) in product(zip(names, kinds, strict=True), repeat=2):
        is_one = casts(one.dataType, other.dataType)
        with nullcontext() if is_one else pytest.raises(AnalysisException):
            spark.sql(f"SELECT CAST(CAST(NULL AS {source}) AS {target})")
