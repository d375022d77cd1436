"""The envelope of a record: with and without schemas, broken, foreign, from other versions."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from lakeingest.decode.json.envelope import (
    carried_schemas,
    decode_envelope,
    decode_transaction_metadata,
)
from tests.envelope.records import Record, frame, logged, postgresql_event

EVENT = postgresql_event(xid=7, before=100, lsn=110)


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def wrapped(payload: Any, name: str = "px.Envelope") -> dict[str, Any]:
    fields = [{"field": "payload", "type": "string", "doc": 'a "quoted","payload": in it'}]
    return {"schema": {"type": "struct", "fields": fields, "name": name}, "payload": payload}


def laid_out(**row: Any) -> str:
    """Return an event as text, in the order of fields that Debezium's schema has."""
    event = EVENT | {"source": {"version": "3.7.0.Final"} | EVENT["source"]}
    rows = {"before": None, "after": {"id": 1, "v": "é"} | row}
    return compact(rows | {name: value for name, value in event.items() if name not in rows})


READ: dict[str, Any] = {
    "bare": EVENT,
    "wrapped": wrapped(EVENT),
    "wrapped otherwise": wrapped(EVENT, "px.another.Envelope"),
    "wrapped without a schema": {"schema": None, "payload": EVENT},
    "unknown fields": EVENT
    | {"ts_ns": 1, "after": {"op": "x", "deep": [{"source": 1}]}}
    | {"source": EVENT["source"] | {"origin": {"a": 1}, "xmin": None, "ts_us": 5}},
    "snapshot as boolean": EVENT | {"source": EVENT["source"] | {"snapshot": True}},
    "numbers as text": EVENT | {"transaction": {"id": 7, "total_order": 1}},
}
LAID_OUT: dict[str, Any] = {
    "wrapped as Debezium lays it out": wrapped(json.loads(laid_out(payload={"payload": "x"}))),
    "as Debezium lays it out": laid_out(),
    "a row that quotes an envelope": laid_out(note=f"say {laid_out()}"),
    "a row with an envelope in it": laid_out(source={"version": "1"}, z=1),
    "the source first": compact({"source": EVENT["source"]} | EVENT),
}
MALFORMED: dict[str, Any] = {
    "truncated": json.dumps(EVENT)[:-9],
    "truncated in the header": compact(EVENT)[: -len(',"op":"c"}') - 20],
    "wrapped and truncated": compact(wrapped(EVENT))[:-1],
    "broken off in its schema": compact(wrapped(EVENT))[:60],
    "wrapped and broken in its last octet": compact(wrapped(EVENT))[:-1] + "x",
    "something behind it": json.dumps(EVENT) + "xyz",
    "a brace behind it": json.dumps(EVENT) + "}",
    "two in one": json.dumps(EVENT) * 2,
    "two in one with a comma": f"{json.dumps(EVENT)},{json.dumps(EVENT)}",
    "a field behind it": json.dumps(EVENT) + ',"more":1',
    "a row that is no UTF-8": laid_out().encode().replace(b"\\u00e9", b"\xff\xfe"),
    "no UTF-8 in another layout": json.dumps(EVENT | {"after": {"v": "?"}})
    .encode()
    .replace(b"?", b"\xc3"),
    "nothing": b"",
    "white space only": b" ",
    "JSON's null": "null",
    "not JSON": "Sat Nov 21",
    "a JSON string": '"text"',
    "no UTF-8": b"\xff\xfe\x00",
    "source is text": EVENT | {"source": "postgres"},
    "lsn is text": EVENT | {"source": EVENT["source"] | {"lsn": "0/1A"}},
}
WITHOUT_OPERATION: dict[str, Any] = {
    "null record": None,
    "heartbeat": {"ts_ms": 1},
    "empty object": {},
    "wrapped null": {"schema": None, "payload": None},
}
VALUES = READ | LAID_OUT | MALFORMED | WITHOUT_OPERATION


@pytest.fixture(scope="module")
def envelopes(spark: SparkSession) -> dict[str, Row]:
    rows = decode_envelope(logged(spark, VALUES.values())).orderBy("offset").collect()
    return dict(zip(VALUES, rows, strict=True))


@pytest.mark.parametrize("form", READ)
def test_the_header_fields_are_read_in_every_form(envelopes: dict[str, Row], form: str) -> None:
    row = envelopes[form]
    assert not row["malformed"]
    assert (row["op"], row["source"]["table"], row["source"]["lsn"]) == ("c", "a", 110)
    assert row["source"]["sequence"] == '["100","110"]'
    assert row["transaction"]["id"] in ("7:110", "7")
    assert row["transaction"]["total_order"] == 1


def test_the_records_text_is_carried_on_untouched(envelopes: dict[str, Row]) -> None:
    for form in ("bare", "truncated"):
        sent = VALUES[form]
        expected = sent if isinstance(sent, str) else compact(sent)
        assert envelopes[form]["value"] == expected.encode()
    assert envelopes["bare"]["key"] == b'{"id":1}'


def test_a_schema_in_a_record_is_named_and_no_longer_carried(envelopes: dict[str, Row]) -> None:
    one, other = (json.loads(envelopes[form]["value"]) for form in ("wrapped", "wrapped otherwise"))
    assert one["schema"] != other["schema"]
    assert all(re.fullmatch("[0-9A-F]{16}", value["schema"]) for value in (one, other))
    assert one == EVENT | {"schema": one["schema"]}
    rows = json.loads(envelopes["wrapped as Debezium lays it out"]["value"])
    assert (rows["schema"], rows["after"]["payload"]) == (one["schema"], {"payload": "x"})
    assert [*rows] == ["schema", "before", "after"]


def test_the_schemas_of_a_log_are_found_once_each_under_the_names_of_its_values(
    spark: SparkSession, envelopes: dict[str, Row]
) -> None:
    forms = ["wrapped", "wrapped otherwise", "wrapped", "bare", "null record"]
    forms += ["wrapped without a schema", "wrapped null"]
    schemas = carried_schemas(logged(spark, (VALUES[form] for form in forms))).collect()
    assert {bytes(row["tag"]).decode(): json.loads(row["schema"]) for row in schemas} == {
        json.loads(envelopes[form]["value"])["schema"]: VALUES[form]["schema"]
        for form in ("wrapped", "wrapped otherwise")
    }


def test_a_key_loses_its_schema_too(spark: SparkSession) -> None:
    keys = [{"id": 1}, wrapped({"id": 1}), {"schema": "public", "id": 1}, None]
    records = [Record("t", VALUES["bare"], key, 0, at) for at, key in enumerate(keys)]
    rows = decode_envelope(frame(spark, records)).orderBy("offset").collect()
    bare = b'{"id":1}'
    assert [row["key"] for row in rows] == [bare, bare, b'{"schema":"public","id":1}', None]


def test_a_snapshot_marker_may_be_a_boolean(envelopes: dict[str, Row]) -> None:
    assert envelopes["snapshot as boolean"]["source"]["snapshot"] == "true"
    assert envelopes["bare"]["source"]["snapshot"] is None


@pytest.mark.parametrize("form", MALFORMED)
def test_what_is_no_envelope_is_malformed_and_no_crash(
    envelopes: dict[str, Row], form: str
) -> None:
    assert envelopes[form]["malformed"]


@pytest.mark.parametrize("form", WITHOUT_OPERATION)
def test_a_record_without_an_operation_is_not_malformed(
    envelopes: dict[str, Row], form: str
) -> None:
    row = envelopes[form]
    assert not row["malformed"]
    assert row["op"] is None


END = {
    "status": "END",
    "id": "7:120",
    "event_count": 2,
    "data_collections": [{"data_collection": "public.a", "event_count": 2}],
    "ts_ms": 1795255555620,
}


def test_transaction_metadata_is_read_with_and_without_schemas(spark: SparkSession) -> None:
    values = [END, wrapped(END), END | {"more": 1}, json.dumps(END)[:-4], {"ts_ms": 1}]
    rows = decode_transaction_metadata(logged(spark, values)).orderBy("offset").collect()
    for row in rows[:3]:
        assert (row["status"], row["id"], row["event_count"]) == ("END", "7:120", 2)
        assert [tuple(item) for item in row["data_collections"]] == [("public.a", 2)]
        assert row["ts_ms"] == 1795255555620
    assert [row["malformed"] for row in rows] == [False, False, False, True, False]
    assert rows[4]["status"] is None


@pytest.mark.parametrize("form", ["as Debezium lays it out", "a row that quotes an envelope"])
def test_of_an_event_laid_out_as_debezium_does_only_the_rows_are_carried_on(
    envelopes: dict[str, Row], form: str
) -> None:
    sent = json.loads(VALUES[form])
    row = envelopes[form]
    assert (row["op"], row["malformed"]) == ("c", False)
    assert json.loads(row["value"]) == {"before": sent["before"], "after": sent["after"]}


@pytest.mark.parametrize("form", ["a row with an envelope in it", "the source first"])
def test_an_event_laid_out_otherwise_is_carried_on_whole(
    envelopes: dict[str, Row], form: str
) -> None:
    sent = VALUES[form]
    whole = json.loads(sent) if isinstance(sent, str) else sent
    assert json.loads(envelopes[form]["value"]) == whole
