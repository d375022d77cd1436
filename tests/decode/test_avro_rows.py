"""Rows of Avro records: several schemas in one batch, every type, real events."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from lakeingest.decode.avro.columns import record_columns, side_columns
from lakeingest.decode.avro.format import AvroFormat
from lakeingest.decode.avro.rows import AvroRows
from lakeingest.decode.avro.schema import AvroSchema
from lakeingest.decode.encodings import Encodings
from lakeingest.decode.json.envelope import split_schema
from lakeingest.decode.json.rows import JsonRows
from lakeingest.decode.row import RowSpec, moved_from_part, with_key, with_parts, with_row
from lakeingest.decode.types.logical import AVRO, JSON
from lakeingest.decode.wire import Samples
from tests.decode.avro import (
    envelope_schema,
    event,
    field,
    in_avro,
    parsed,
    record,
    record_schema,
    rows_of,
    tag,
)
from tests.decode.connect import DATE, MICROS, MILLIS, VARIABLE, ZONED, decimal, semantic

DATA = Path(__file__).parent / "data"
JSON_VECTORS = DATA.parents[1] / "envelope" / "data" / "postgresql.jsonl"

OLD = envelope_schema(field("id", "int"), field("gone", "string"))
NEW = envelope_schema(field("id", "long"), field("added", ["string", "null"], default="web"))


def test_records_of_old_and_new_schemas_interleave_in_one_batch(spark: SparkSession) -> None:
    records = [
        record(9, OLD, event({"id": 1, "gone": "a"})),
        record(12, NEW, event({"id": 2**40, "added": None})),
        record(9, OLD, event({"id": 3, "gone": "b"})),
        record(12, NEW, event(None, op="d", before={"id": 4, "added": "x"})),
        record(12, NEW, event({"id": 5, "added": "shop"})),
    ]
    assert [row and row.asDict() for row in rows_of(spark, {9: OLD, 12: NEW}, records)] == [
        {"id": 1, "gone": "a", "added": None},
        {"id": 2**40, "gone": None, "added": None},
        {"id": 3, "gone": "b", "added": None},
        None,
        {"id": 5, "gone": None, "added": "shop"},
    ]


POINT = record_schema(
    "Point",
    field("x", "double"),
    field("wkb", ["null", "bytes"]),
    namespace="io.debezium.data.geometry",
)
TYPES: dict[str, tuple[Any, Any, Any]] = {
    "small": ({"type": "int", "connect.type": "int16"}, -7, -7),
    "tiny": ({"type": "int", "connect.type": "int8"}, -128, -128),
    "flag": ("boolean", True, True),
    "ratio": ("double", 0.1, 0.1),
    "single": ("float", 0.5, 0.5),
    "wide": (in_avro(decimal(38, 3)), (-(10**37)).to_bytes(16, "big", signed=True), None),
    "amount": (in_avro(decimal(10, 2)), b"\x00\x96", None),
    "by_logical_type": (
        {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 1},
        b"\xff",
        None,
    ),
    "any_scale": (in_avro(VARIABLE), {"scale": 3, "value": b"\x01\x00"}, None),
    "day": (in_avro(DATE), 20455, 20455),
    "day_by_logical_type": ({"type": "int", "logicalType": "date"}, -1, -1),
    "time": (in_avro(semantic("int32", "time.Time")), 45_296_789, 45_296_789),
    "at": (in_avro(MICROS), -1, -1),
    "at_millis": (in_avro(MILLIS), 1_700_000_000_123, 1700000000123),
    "zoned": (in_avro(ZONED), "2026-01-02T03:04:05.6Z", None),
    "doc": (in_avro(semantic("string", "data.Json")), '{"ä": "\\u0000"}', None),
    "raw": ("bytes", b"\x00\xff", None),
    "bits": (in_avro(semantic("bytes", "data.Bits")), b"\x05", None),
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


@pytest.mark.generated
def test_every_type_is_read_from_avro_as_it_is_from_json(spark: SparkSession) -> None:
    schema = envelope_schema(*(field(name, kind) for name, (kind, _, _) in TYPES.items()))
    values = {name: value for name, (_, value, _) in TYPES.items()}
    (from_avro,) = rows_of(spark, {3: schema}, [record(3, schema, event(values))])
    shown = {
        name: shown_in_json(value) if text is None else text
        for name, (_, value, text) in TYPES.items()
    }
    columns = side_columns(AvroSchema.parse(json.dumps(schema)), JSON)
    text = json.dumps({"after": shown}).encode()
    frame = spark.createDataFrame([(text,)], "value binary")
    spec = RowSpec(columns, Encodings(), JsonRows())
    (from_json,) = with_row(frame, spec, masked=False).collect()
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
    by_tag = {tag(int(number)): AvroSchema.parse(text) for number, text in schemas.items()}
    octets = [
        bytes.fromhex(line["v"])
        for line in vectors(DATA / "avro.jsonl")
        if line["topic"] == f"px.public.{table}" and line["v"]
    ]
    assert octets
    (only,) = {value[:5] for value in octets}
    schema = by_tag[only]
    shown = AvroFormat(by_tag).table_shape(Samples(value_tags=frozenset(v[:5] for v in octets)))
    frame = spark.createDataFrame(list(enumerate(octets)), "at int, value binary").coalesce(1)
    avro = with_row(frame, RowSpec(shown.columns, Encodings(), shown.reader), masked=False)
    rows = {str(row["row"]) for row in avro.collect() if row["row"] is not None}
    texts = [
        (json.dumps(line["v"], separators=(",", ":")).encode(),)
        for line in vectors(JSON_VECTORS)
        if line["topic"] == f"px.public.{table}" and line["v"]
    ]
    wrapped = spark.createDataFrame(texts, "value binary").coalesce(1)
    plain = wrapped.select(split_schema(F.col("value"))[0].alias("value"))
    columns = side_columns(schema, JSON)
    json_rows = with_row(plain, RowSpec(columns, Encodings(), JsonRows()), masked=False)
    assert rows
    assert rows <= {str(row["row"]) for row in json_rows.collect() if row["row"] is not None}


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


@pytest.fixture(scope="module")
def left_out(spark: SparkSession) -> dict[str, tuple[bool, Row]]:
    """By column: whether the record that leaves it out is hinted at, and the decoded record."""
    fields = (field(name, ["null", kind]) for name, (kind, _) in UNAVAILABLE.items())
    schema = envelope_schema(*fields)
    by_tag = parsed({3: schema})
    octets = [
        record(3, schema, event({**dict.fromkeys(UNAVAILABLE), name: value}))
        for name, (_, value) in UNAVAILABLE.items()
    ]
    form = AvroFormat(by_tag)
    hints = [any(mark in each for mark in form.marks(Encodings())) for each in octets]
    shown = form.table_shape(Samples(value_tags=frozenset(by_tag)))
    frame = spark.createDataFrame(list(enumerate(octets)), "at int, value binary").coalesce(1)
    spec = RowSpec(shown.columns, Encodings(), shown.reader)
    rows = with_row(frame, spec, masked=True).orderBy("at").collect()
    return dict(zip(UNAVAILABLE, zip(hints, rows, strict=True), strict=True))


@pytest.mark.parametrize("name", UNAVAILABLE)
def test_an_unavailable_value_is_hinted_at_and_recognised(
    left_out: dict[str, tuple[bool, Row]], name: str
) -> None:
    is_hinted_at, row = left_out[name]
    assert is_hinted_at
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
    narrow, wide = (record_schema("Key", field("id", kind)) for kind in ("int", "long"))
    by_tag = parsed({1: narrow, 2: wide})
    reader = AvroRows({}, by_tag)
    assert not reader.bare_keys
    assert AvroRows({}, {tag(1): by_tag[tag(1)]}).bare_keys
    columns = record_columns(by_tag[tag(2)], by_tag[tag(2)].tree, AVRO)
    octets = [record(1, narrow, {"id": 7}), record(2, wide, {"id": 7}), None]
    frame = spark.createDataFrame(list(enumerate(octets)), "at int, key binary").coalesce(1)
    rows = with_key(frame, columns, "key_row", reader).orderBy("at").collect()
    assert [row["key_row"] and row["key_row"]["id"] for row in rows] == [7, 7, None]
    body = AvroFormat(by_tag).key_body(F.col("key"))
    assert [bytes(row[0]) for row in frame.select(body).limit(2).collect()] == [b"\x0e", b"\x0e"]


def test_the_old_key_in_a_header_is_read_as_json(spark: SparkSession) -> None:
    by_tag = parsed({1: record_schema("Key", field("n", {"type": "int", "connect.type": "int16"}))})
    key = tuple(record_columns(by_tag[tag(1)], by_tag[tag(1)].tree, AVRO))
    frame = spark.createDataFrame([('{"n":7}',)], "moved_from string")
    moved = with_parts(frame, moved_from_part(key, "row", AvroRows({}, by_tag)))
    assert moved.collect()[0]["row"]["n"] == 7
