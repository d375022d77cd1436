"""Rows of Avro records: several schemas in one batch, every type, real events."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakeingest.decode.avro.columns import record_columns, side_columns
from lakeingest.decode.avro.format import AvroFormat
from lakeingest.decode.avro.rows import AvroRows
from lakeingest.decode.avro.schema import AvroSchema
from lakeingest.decode.columns import SourceColumn
from lakeingest.decode.encodings import Encodings
from lakeingest.decode.json.envelope import split_schema
from lakeingest.decode.json.rows import JsonRows
from lakeingest.decode.row import RowSpec, moved_from_part, with_key, with_parts, with_row
from lakeingest.decode.types.logical import AVRO, JSON
from lakeingest.decode.wire import Samples
from tests.decode.avro import envelope_schema, event, record, rows_of, tag

DATA = Path(__file__).parent / "data"
JSON_VECTORS = DATA.parents[1] / "envelope" / "data" / "postgresql.jsonl"

OLD = envelope_schema({"name": "id", "type": "int"}, {"name": "gone", "type": "string"})
NEW = envelope_schema(
    {"name": "id", "type": "long"},
    {"name": "added", "type": ["string", "null"], "default": "web"},
)


def test_records_of_old_and_new_schemas_interleave_in_one_batch(spark: SparkSession) -> None:
    records = [
        record(9, OLD, event({"id": 1, "gone": "a"})),
        record(12, NEW, event({"id": 2**40, "added": None})),
        record(9, OLD, event({"id": 3, "gone": "b"})),
        record(12, NEW, event(None, op="d", before={"id": 4, "added": "x"})),
        record(12, NEW, event({"id": 5, "added": "shop"})),
    ]
    rows = rows_of(spark, {9: OLD, 12: NEW}, records)
    assert [row and row.asDict() for row in rows] == [
        {"id": 1, "gone": "a", "added": None},
        {"id": 2**40, "gone": None, "added": None},
        {"id": 3, "gone": "b", "added": None},
        None,
        {"id": 5, "gone": None, "added": "shop"},
    ]


def connect(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "connect.version": 1, "connect.name": name, **more}


DECIMAL = "org.apache.kafka.connect.data.Decimal"
VARIABLE = {
    "type": "record",
    "name": "VariableScaleDecimal",
    "namespace": "io.debezium.data",
    "fields": [{"name": "scale", "type": "int"}, {"name": "value", "type": "bytes"}],
    "connect.name": "io.debezium.data.VariableScaleDecimal",
}
POINT = {
    "type": "record",
    "name": "Point",
    "namespace": "io.debezium.data.geometry",
    "fields": [{"name": "x", "type": "double"}, {"name": "wkb", "type": ["null", "bytes"]}],
}


def amount(precision: int, scale: int) -> dict[str, Any]:
    parameters = {"scale": str(scale), "connect.decimal.precision": str(precision)}
    return connect("bytes", DECIMAL, **{"connect.parameters": parameters})


TYPES: dict[str, tuple[Any, Any, Any]] = {
    "small": ({"type": "int", "connect.type": "int16"}, -7, -7),
    "tiny": ({"type": "int", "connect.type": "int8"}, -128, -128),
    "flag": ("boolean", True, True),
    "ratio": ("double", 0.1, 0.1),
    "single": ("float", 0.5, 0.5),
    "wide": (amount(38, 3), (-(10**37)).to_bytes(16, "big", signed=True), None),
    "amount": (amount(10, 2), b"\x00\x96", None),
    "by_logical_type": (
        {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 1},
        b"\xff",
        None,
    ),
    "any_scale": (VARIABLE, {"scale": 3, "value": b"\x01\x00"}, None),
    "day": (connect("int", "io.debezium.time.Date"), 20455, 20455),
    "day_by_logical_type": ({"type": "int", "logicalType": "date"}, -1, -1),
    "time": (connect("int", "io.debezium.time.Time"), 45_296_789, 45_296_789),
    "at": (connect("long", "io.debezium.time.MicroTimestamp"), -1, -1),
    "at_millis": (connect("long", "io.debezium.time.Timestamp"), 1_700_000_000_123, 1700000000123),
    "zoned": (connect("string", "io.debezium.time.ZonedTimestamp"), "2026-01-02T03:04:05.6Z", None),
    "doc": (connect("string", "io.debezium.data.Json"), '{"ä": "\\u0000"}', None),
    "raw": ("bytes", b"\x00\xff", None),
    "bits": (connect("bytes", "io.debezium.data.Bits"), b"\x05", None),
    "tags": ({"type": "array", "items": ["null", "string"]}, ["a", None, "ü"], None),
    "numbers": ({"type": "array", "items": "int"}, [1, -2], None),
    "by_name": ({"type": "map", "values": ["null", "string"]}, {"a": None, "b": "c"}, None),
    "point": (POINT, {"x": 1.5, "wkb": b"\x01"}, None),
    "state": ({"type": "enum", "name": "State", "symbols": ["on", "off"]}, "off", None),
    "nothing": (["null", "string"], None, None),
}
"""By column: the Avro type, a value as fastavro takes it, and as JSON shows it (null: derived)."""


def shown_in_json(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {name: shown_in_json(item) for name, item in value.items()}
    return value


def test_every_type_is_read_from_avro_as_it_is_from_json(spark: SparkSession) -> None:
    fields = [{"name": name, "type": kind} for name, (kind, _, _) in TYPES.items()]
    schema = envelope_schema(*fields)
    values = {name: value for name, (_, value, _) in TYPES.items()}
    (from_avro,) = rows_of(spark, {3: schema}, [record(3, schema, event(values))])
    shown = {
        name: shown_in_json(value) if text is None else text
        for name, (_, value, text) in TYPES.items()
    }
    columns = side_columns(AvroSchema.parse(json.dumps(schema)), JSON)
    text = json.dumps({"after": shown}).encode()
    frame = spark.createDataFrame([(text,)], "value binary")
    (from_json,) = with_row(
        frame, RowSpec(columns, Encodings(), JsonRows()), masked=False
    ).collect()
    assert from_avro is not None
    assert from_avro.asDict(recursive=True) == from_json["row"].asDict(recursive=True)
    assert str(from_avro["amount"]) == "1.50"
    assert str(from_avro["by_logical_type"]) == "-0.1"
    assert from_avro["any_scale"] == "0.256"
    assert from_avro["raw"] == b"\x00\xff"


def vectors(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("table", ["b", "e"])
def test_debeziums_own_events_give_the_same_rows_in_avro_and_in_json(
    spark: SparkSession, table: str
) -> None:
    schemas: dict[str, str] = json.loads((DATA / "avro_schemas.json").read_text("utf-8"))
    known = {tag(int(number)): AvroSchema.parse(text) for number, text in schemas.items()}
    octets = [
        bytes.fromhex(line["v"])
        for line in vectors(DATA / "avro.jsonl")
        if line["topic"] == f"px.public.{table}" and line["v"]
    ]
    assert octets
    (only,) = {value[:5] for value in octets}
    schema = known[only]
    shown = AvroFormat(known).table_shape(Samples(value_tags=frozenset(v[:5] for v in octets)))
    frame = spark.createDataFrame(list(enumerate(octets)), "at int, value binary").coalesce(1)
    avro = with_row(frame, RowSpec(shown.columns, Encodings(), shown.reader), masked=False)
    found = {str(row["row"]) for row in avro.collect() if row["row"] is not None}
    texts = [
        (json.dumps(line["v"], separators=(",", ":")).encode(),)
        for line in vectors(JSON_VECTORS)
        if line["topic"] == f"px.public.{table}" and line["v"]
    ]
    wrapped = spark.createDataFrame(texts, "value binary").coalesce(1)
    plain = wrapped.select(split_schema(F.col("value"))[0].alias("value"))
    columns = side_columns(schema, JSON)
    json_rows = with_row(plain, RowSpec(columns, Encodings(), JsonRows()), masked=False)
    expected = {str(row["row"]) for row in json_rows.collect() if row["row"] is not None}
    assert found
    assert found <= expected


PLACEHOLDER = b"__debezium_unavailable_value"
UNAVAILABLE: dict[str, tuple[Any, Any]] = {
    "text": ("string", PLACEHOLDER.decode()),
    "octets": ("bytes", PLACEHOLDER),
    "numbers": ({"type": "array", "items": "int"}, list(PLACEHOLDER)),
    "nullable_numbers": ({"type": "array", "items": ["null", "int"]}, list(PLACEHOLDER)),
    "texts": ({"type": "array", "items": ["null", "string"]}, [PLACEHOLDER.decode()]),
    "many_octets": ({"type": "array", "items": "bytes"}, [PLACEHOLDER]),
    "uuids": ({"type": "array", "items": "string"}, [Encodings().uuid_mark()]),
    "longs": ({"type": "array", "items": "long"}, list(PLACEHOLDER)),
    "hstore": ("string", Encodings().hstore_mark()),
    "hstore_map": (
        {"type": "map", "values": ["null", "string"]},
        {PLACEHOLDER.decode(): PLACEHOLDER.decode()},
    ),
}


@pytest.mark.parametrize("name", UNAVAILABLE)
def test_an_unavailable_value_is_hinted_at_and_recognised(spark: SparkSession, name: str) -> None:
    kind, value = UNAVAILABLE[name]
    schema = envelope_schema({"name": name, "type": ["null", kind]})
    known = {tag(3): AvroSchema.parse(json.dumps(schema))}
    octets = record(3, schema, event({name: value}))
    form = AvroFormat(known)
    assert any(mark in octets for mark in form.marks(Encodings()))
    shown = form.table_shape(Samples(value_tags=frozenset(known)))
    frame = spark.createDataFrame([(octets,)], "value binary")
    (row,) = with_row(
        frame, RowSpec(shown.columns, Encodings(), shown.reader), masked=True
    ).collect()
    assert (row["row"][name], row["unavailable"]) == (None, [name])


def test_a_record_of_a_schema_that_is_not_the_tables_fails_the_job(spark: SparkSession) -> None:
    old = AvroSchema.parse(json.dumps(OLD))
    octets = record(12, NEW, event({"id": 1, "added": "x"}))
    frame = spark.createDataFrame([(octets,)], "value binary")
    reader = AvroRows({tag(9): old}, {})
    rows = with_row(frame, RowSpec(side_columns(old, AVRO), Encodings(), reader), masked=False)
    with pytest.raises(Exception, match="a schema that is not known"):
        rows.collect()


def test_a_record_that_breaks_off_fails_the_job(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="(?i)malformed"):
        rows_of(spark, {9: OLD}, [record(9, OLD, event({"id": 1, "gone": "abc"}))[:9]])


def test_keys_of_several_schemas_are_read_each_by_its_own(spark: SparkSession) -> None:
    narrow = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "int"}]}
    wide = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}
    known = {
        tag(number): AvroSchema.parse(json.dumps(schema))
        for number, schema in ((1, narrow), (2, wide))
    }
    reader = AvroRows({}, known)
    assert not reader.bare_keys
    assert AvroRows({}, {tag(1): known[tag(1)]}).bare_keys
    columns = record_columns(known[tag(2)], known[tag(2)].tree, AVRO)
    octets = [record(1, narrow, {"id": 7}), record(2, wide, {"id": 7}), None]
    frame = spark.createDataFrame(list(enumerate(octets)), "at int, key binary").coalesce(1)
    found = with_key(frame, columns, "key_row", reader).orderBy("at").collect()
    assert [row["key_row"] and row["key_row"]["id"] for row in found] == [7, 7, None]
    body = AvroFormat(known).key_body(F.col("key"))
    assert [bytes(row[0]) for row in frame.select(body).limit(2).collect()] == [b"\x0e", b"\x0e"]


def test_the_old_key_in_a_header_is_read_as_json(spark: SparkSession) -> None:
    small = {"type": "int", "connect.type": "int16"}
    schema = {"type": "record", "name": "Key", "fields": [{"name": "n", "type": small}]}
    parsed = AvroSchema.parse(json.dumps(schema))
    key: tuple[SourceColumn, ...] = record_columns(parsed, parsed.tree, AVRO)
    frame = spark.createDataFrame([('{"n":7}',)], "moved_from string")
    moved = with_parts(frame, moved_from_part(tuple(key), "row", AvroRows({}, {tag(1): parsed})))
    assert moved.collect()[0]["row"]["n"] == 7
