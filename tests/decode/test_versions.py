"""Records of two versions of a table in one batch: each is read by its own schema."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType, StringType

from lakeingest.decode.avro.format import AvroFormat
from lakeingest.decode.avro.schema import AvroSchema
from lakeingest.decode.columns import SourceColumn, from_connect, merge_versions
from lakeingest.decode.encodings import Encodings
from lakeingest.decode.json.format import CarriedSchema, JsonFormat
from lakeingest.decode.json.rows import JsonRows
from lakeingest.decode.row import RowSpec, with_key, with_row
from lakeingest.decode.types.logical import AVRO, JSON, PRIMITIVES, as_declared
from lakeingest.decode.types.logical_type import as_narrower_type
from lakeingest.decode.wire import Samples, TableShape
from tests.decode.avro import envelope_schema, event, record, tag
from tests.decode.wire import minimal_width
from tests.forms import further

DECIMAL = "org.apache.kafka.connect.data.Decimal"
TIME = "io.debezium.time."


def number(precision: int, scale: int) -> dict[str, Any]:
    parameters = {"scale": str(scale), "connect.decimal.precision": str(precision)}
    return {"type": "bytes", "name": DECIMAL, "parameters": parameters}


def named(kind: str, name: str) -> dict[str, Any]:
    return {"type": kind, "name": name}


def many(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def parts(name: str, **fields: str) -> dict[str, Any]:
    described = [{"field": field, "type": kind} for field, kind in fields.items()]
    return {"type": "struct", "name": name, "fields": described}


def unscaled(value: int) -> bytes:
    return value.to_bytes(minimal_width(value), "big", signed=True)


DAY = {"year": 2026, "month": 1, "day": 3}
MILLIS, MICROS = named("int64", TIME + "Timestamp"), named("int64", TIME + "MicroTimestamp")
AT, SHOWN_AT = 1767357000500, "2026-01-02 12:30:00.5"
Told = tuple[dict[str, Any], Any]
CHANGED: dict[str, tuple[Told, Told, str, str]] = {
    "wider": (
        (number(10, 2), unscaled(150)),
        (number(12, 4), unscaled(15_000)),
        "1.5000",
        "1.5000",
    ),
    "whole": ((number(5, 2), unscaled(150)), (number(9, 2), unscaled(151)), "1.50", "1.51"),
    "large": (
        (number(50, 2), unscaled(-150)),
        (number(60, 4), unscaled(-15_000)),
        "-1.50",
        "-1.5000",
    ),
    "at": ((MILLIS, AT), (MICROS, AT * 1000), SHOWN_AT, SHOWN_AT),
    "ats": ((many(MILLIS), [AT]), (many(MICROS), [AT * 1000]), f"[{SHOWN_AT}]", f"[{SHOWN_AT}]"),
    "time": (
        (named("int32", TIME + "Time"), 45_000_500),
        (named("int64", TIME + "MicroTime"), 45_000_500_001),
        "12:30:00.500000",
        "12:30:00.500001",
    ),
    "count": (({"type": "int32"}, -1), ({"type": "int64"}, 2**40), "-1", str(2**40)),
    "mode": (
        (MICROS, AT * 1000),
        (named("string", TIME + "IsoTimestamp"), "2026-01-02T12:30:00.5Z"),
        SHOWN_AT,
        SHOWN_AT,
    ),
    "day": (
        (named("int32", TIME + "Date"), 20455),
        (parts(TIME + "StructuredDate", year="int32", month="int8", day="int8"), DAY),
        "2026-01-02",
        "2026-01-03",
    ),
    "any": (
        (
            parts("io.debezium.data.VariableScaleDecimal", scale="int32", value="bytes"),
            {"scale": 1, "value": unscaled(150)},
        ),
        ({"type": "string"}, '{"a": 1}'),
        "15.0",
        '{"a": 1}',
    ),
    "digits": ((number(50, 2), unscaled(150)), ({"type": "string"}, "1.5"), "1.50", "1.5"),
    "note": (
        ({"type": "string"}, "a"),
        (named("string", "io.debezium.data.Json"), "{}"),
        "a",
        "{}",
    ),
}
"""Type and value of a column in the first version and in the second; both in the lake, as text."""

_AVRO = {"int8": "int", "int32": "int", "int64": "long"}


def in_avro(spec: Mapping[str, Any]) -> Any:
    if spec["type"] == "array":
        return {"type": "array", "items": in_avro(spec["items"])}
    if spec["type"] == "struct":
        fields = [{"name": part["field"], "type": in_avro(part)} for part in spec["fields"]]
        name = spec["name"]
        return {"type": "record", "name": name, "connect.name": name, "fields": fields}
    kind = _AVRO.get(spec["type"], spec["type"])
    named_so = {"connect.name": spec["name"]} if "name" in spec else {}
    more = {"connect.parameters": spec["parameters"]} if "parameters" in spec else {}
    return {"type": kind, **named_so, **more}


def in_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: in_json(item) for name, item in value.items()}
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


Version = Sequence[tuple[str, Mapping[str, Any], Any]]
"""Columns of a version: name, type, value."""


def written(form: str, versions: Sequence[Version]) -> tuple[TableShape, list[tuple[bytes, bytes]]]:
    """Write a record of each version; return what they show, and key and value of each."""
    records, tags, key_tags = [], [], []
    if form == "avro":
        known = {}
        for at, version in enumerate(versions):
            fields = [{"name": name, "type": in_avro(kind)} for name, kind, _ in version]
            row = {name: value for name, _, value in version}
            for offset, schema in ((1, envelope_schema(*fields)), (11, key_schema(fields[0]))):
                known[tag(at + offset)] = AvroSchema.parse(json.dumps(schema))
            value = record(at + 1, envelope_schema(*fields), event(row))
            key = record(at + 11, key_schema(fields[0]), {fields[0]["name"]: version[0][2]})
            records.append((key, value))
            tags.append(tag(at + 1))
            key_tags.append(tag(at + 11))
        samples = Samples(value_tags=frozenset(tags), key_tags=frozenset(key_tags))
        return AvroFormat(known, AVRO.with_policy("string")).table_shape(samples), records
    carried = {}
    for at, version in enumerate(versions):
        name = f"{at:016X}"
        fields = [{"field": name, **kind} for name, kind, _ in version]
        carried[name.encode()] = CarriedSchema(at, from_connect(fields, JSON.with_policy("string")))
        row = {name: in_json(value) for name, _, value in version}
        text = json.dumps({"schema": name, "before": None, "after": row}, separators=(",", ":"))
        key_text = json.dumps({version[0][0]: row[version[0][0]]})
        records.append((key_text.encode(), text.encode()))
    bare = tuple(value for _, value in records)
    samples = Samples(bare, (records[0][0],), frozenset(carried))
    return JsonFormat(carried).table_shape(samples), records


def key_schema(field: Any) -> dict[str, Any]:
    return {"type": "record", "name": "Key", "fields": [field]}


FORMS = pytest.mark.parametrize("form", ["json", "avro"])


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
    first = [(name, *told[0]) for name, told in CHANGED.items()]
    second = [(name, *told[1]) for name, told in CHANGED.items()]
    versions = (first, second) if newer else (second, first)
    shown, records = written(form, versions)
    frame = spark.createDataFrame(records, "key binary, value binary").coalesce(1)
    decoded = with_row(frame, RowSpec(shown.columns, Encodings(), shown.reader), masked=True)
    texts = (F.col(f"row.{name}").cast("string").alias(name) for name in CHANGED)
    found = [row.asDict() for row in decoded.select(*texts).collect()]
    expected = [{name: told[2 + at] for name, told in CHANGED.items()} for at in (0, 1)]
    assert found == (expected if newer else expected[::-1])
    assert {c.name: c.type.spark for c in shown.columns}["wider"] == DecimalType(12, 4)


@FORMS
def test_each_key_of_a_batch_is_read_by_its_own_schema(spark: SparkSession, form: str) -> None:
    old, new = number(10, 2), number(12, 4)
    shown, records = written(form, ([("id", old, unscaled(150))], [("id", new, unscaled(150))]))
    assert not shown.reader.bare_keys
    frame = spark.createDataFrame(records, "key binary, value binary").coalesce(1)
    keyed = with_key(frame, shown.columns, "key_row", shown.reader)
    assert [str(row["key_row"]["id"]) for row in keyed.collect()] == ["1.5000", "0.0150"]


def test_what_is_read_alike_in_all_versions_has_one_conversion() -> None:
    one, two = number(10, 2), number(12, 2)
    for old, new in ((one, two), ({"type": "int16"}, {"type": "int64"}), (MICROS, MICROS)):
        versions = [from_connect([{"field": "c", **kind}], JSON) for kind in (old, new)]
        (column,) = merge_versions({b"1": versions[0], b"2": versions[1]})
        assert column.type is versions[1][0].type
        assert column.type.versions == ()


def test_a_declared_type_is_made_of_each_version_by_itself(spark: SparkSession) -> None:
    kinds = (number(10, 2), number(12, 4))
    columns = [from_connect([{"field": "n", **kind}], JSON) for kind in kinds]
    (column,) = merge_versions({b"0" * 16: columns[0], b"1" * 16: columns[1]})
    as_text = as_declared(column.type, PRIMITIVES["string"])
    assert as_text is not None
    assert as_text.spark == StringType()
    values = [
        json.dumps(
            {"schema": tag * 16, "after": {"n": in_json(unscaled(150))}}, separators=(",", ":")
        )
        for tag in "01"
    ]
    frame = spark.createDataFrame([(value.encode(),) for value in values], "value binary")
    declared = [SourceColumn("n", as_text)]
    rows = with_row(
        frame.coalesce(1), RowSpec(declared, Encodings(), JsonRows()), masked=False
    ).collect()
    assert [row["row"]["n"] for row in rows] == ["1.50", "0.0150"]


def test_types_that_look_the_same_but_read_other_versions_are_read_apart(
    spark: SparkSession,
) -> None:
    old, new = (
        from_connect([{"field": "n", **kind}], JSON) for kind in (number(10, 2), number(12, 4))
    )
    stored = DecimalType(10, 2)
    both = merge_versions({b"0" * 16: old, b"1" * 16: new})
    swapped = merge_versions({b"1" * 16: old, b"0" * 16: new})
    found = []
    for (column,) in (new, both, swapped):
        narrow = SourceColumn("n", as_narrower_type(column.type, stored))
        text = {"schema": "0" * 16, "after": {"n": in_json(unscaled(15_000))}}
        value = json.dumps(text, separators=(",", ":")).encode()
        frame = spark.createDataFrame([(value,)], "value binary").coalesce(1)
        row = with_row(frame, RowSpec((narrow,), Encodings(), JsonRows()), masked=False).first()
        found.append(str(row["row"]["n"]) if row else "")
    assert found == ["1.50", "150.00", "1.50"]


def test_a_value_that_the_common_type_does_not_hold_stops(spark: SparkSession) -> None:
    (wide,), (narrow,) = (
        from_connect([{"field": "n", **kind}], JSON) for kind in (number(10, 0), number(10, 4))
    )
    (column,) = merge_versions({b"0" * 16: [wide], b"1" * 16: [narrow]})
    assert column.type.spark == DecimalType(10, 0)
    for value, stored in ((20_000, "2"), (15_000, None)):
        text = {"schema": "1" * 16, "after": {"n": in_json(unscaled(value))}}
        octets = json.dumps(text, separators=(",", ":")).encode()
        frame = spark.createDataFrame([(octets,)], "value binary")
        rows = with_row(frame, RowSpec([column], Encodings(), JsonRows()), masked=False)
        if stored is None:
            with pytest.raises(Exception, match="a value is not a decimal"):
                rows.collect()
        else:
            assert str(rows.collect()[0]["row"]["n"]) == stored
