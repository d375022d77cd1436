"""Header fields of Avro records, and what cannot be read."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from lakeingest.decode.avro.format import AvroFormat
from lakeingest.decode.avro.schema import AvroSchema
from lakeingest.frame_schemas import ENVELOPE, SOURCE
from lakeingest.plan.ordering import with_ordering_fields
from lakeingest.plan.spec import Ordering
from tests.decode.avro import envelope_schema, event, field, parsed, record, record_schema, tag
from tests.envelope.records import Record, frame, logged

DATA = Path(__file__).parent / "data"
VECTORS = [json.loads(line) for line in (DATA / "avro.jsonl").read_text("utf-8").splitlines()]
SCHEMAS: dict[str, str] = json.loads((DATA / "avro_schemas.json").read_text("utf-8"))
KNOWN = {tag(int(number)): AvroSchema.parse(text) for number, text in SCHEMAS.items()}


def decoded_by_fastavro(octets: bytes) -> Any:
    schema = fastavro.parse_schema(json.loads(SCHEMAS[str(int.from_bytes(octets[1:5], "big"))]))
    return fastavro.schemaless_reader(io.BytesIO(octets[5:]), schema, None)


VALUES = [bytes.fromhex(line["v"]) for line in VECTORS if line["v"]]
EVENTS = [(v, body) for v in VALUES if "op" in (body := decoded_by_fastavro(v))]
BODIES = [body for _, body in EVENTS]


def real_events(spark: SparkSession) -> DataFrame:
    return logged(spark, (value for value, _ in EVENTS))


def test_header_fields_of_real_events_are_what_another_reader_finds(spark: SparkSession) -> None:
    rows = AvroFormat(KNOWN).envelopes(real_events(spark)).orderBy("offset").collect()
    assert len(rows) == len(EVENTS) > 10
    for row, (value, body) in zip(rows, EVENTS, strict=True):
        assert not row["malformed"]
        assert (bytes(row["value"]), row["op"]) == (value, body["op"])
        source = body["source"]
        for name in ("ts_ms", "snapshot", "db", "schema", "table", "sequence", "lsn"):
            assert row["source"][name] == source[name]
        block = body["transaction"]
        assert (row["transaction"] and row["transaction"].asDict()) == (
            block and {"id": block["id"], "total_order": block["total_order"]}
        )


def test_what_rfc_39_asks_for_is_read_where_it_is_wanted(spark: SparkSession) -> None:
    records = real_events(spark)
    rows = AvroFormat(KNOWN).envelopes(records, event=True).orderBy("offset").collect()
    for row, body in zip(rows, BODIES, strict=True):
        assert row["ts_ms"] == body["ts_ms"] is not None
        for name in ("name", "txId", "xmin"):
            assert row["source"][name] == body["source"][name]
    assert AvroFormat(KNOWN).envelopes(records).schema == ENVELOPE


def test_numbers_that_order_rows_are_read_as_text(spark: SparkSession) -> None:
    names = ("txId", "ts_ns", "connector")
    source = with_ordering_fields(SOURCE, Ordering(tuple(f"source.{name}" for name in names)))
    rows = AvroFormat(KNOWN).envelopes(real_events(spark), source=source).orderBy("offset")
    for row, body in zip(rows.collect(), BODIES, strict=True):
        assert not row["malformed"]
        assert row["source"]["lsn"] == body["source"]["lsn"]
        for name in names:
            value = body["source"][name]
            assert row["source"][name] == (None if value is None else str(value))


def test_begin_and_end_of_real_transactions_are_read(spark: SparkSession) -> None:
    metadata = [line["v"] for line in VECTORS if line["topic"].endswith("transaction")]
    octets = [bytes.fromhex(value) for value in metadata]
    assert octets
    rows = AvroFormat(KNOWN).transaction_metadata(logged(spark, octets)).orderBy("offset")
    for row, value in zip(rows.collect(), octets, strict=True):
        body = decoded_by_fastavro(value)
        assert (row["status"], row["id"]) == (body["status"], body["id"])
        assert (row["event_count"], row["ts_ms"]) == (body["event_count"], body["ts_ms"])
        counts = row["data_collections"] and [item.asDict() for item in row["data_collections"]]
        assert counts == body["data_collections"]


ORDERS = envelope_schema(field("id", "int"))
HEARTBEAT = record_schema("Heartbeat", field("ts_ms", "long"))
WHOLE = record(1, ORDERS, event({"id": 5}))
FORMS: dict[str, Any] = {
    "whole": WHOLE,
    "heartbeat": record(2, HEARTBEAT, {"ts_ms": 5}),
    "null record": None,
    "breaks off": WHOLE[:-12],
    "breaks off by an octet": WHOLE[:-1],
    "goes on behind its end": WHOLE + b"\x00",
    "two records": WHOLE + WHOLE[5:],
    "nothing but a schema": WHOLE[:5],
    "shorter than a schema": WHOLE[:3],
    "no octets": b"",
    "another magic octet": b"\x01" + WHOLE[1:],
    "unknown schema": tag(77) + WHOLE[5:],
    "json": b'{"op":"c"}',
}


@pytest.fixture(scope="module")
def forms(spark: SparkSession) -> dict[str, Row]:
    form = AvroFormat(parsed({1: ORDERS, 2: HEARTBEAT}))
    rows = form.envelopes(logged(spark, FORMS.values())).orderBy("offset").collect()
    return dict(zip(FORMS, rows, strict=True))


@pytest.mark.parametrize("form", ["whole", "heartbeat", "null record"])
def test_what_can_be_read_is_not_malformed(forms: dict[str, Row], form: str) -> None:
    assert not forms[form]["malformed"]


@pytest.mark.parametrize("form", [*FORMS][3:])
def test_what_cannot_be_read_is_malformed_and_carried_on(forms: dict[str, Row], form: str) -> None:
    assert forms[form]["malformed"]
    assert bytes(forms[form]["value"]) == FORMS[form]


def test_no_schema_known_yet_means_nothing_can_be_read(spark: SparkSession) -> None:
    rows = AvroFormat({}).envelopes(frame(spark, [Record("t", WHOLE), Record("t", None)]))
    assert [row["malformed"] for row in rows.collect()] == [True, False]
