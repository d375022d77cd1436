"""Rows that ``ExtractNewRecordState`` took out of their envelopes leave the same tables."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pytest

from lakeingest.errors import DataError
from tests.decode.avro import record
from tests.forms import further, with_all
from tests.logs import raw_events
from tests.logs.folder import write_schemas
from tests.vectors import conftest
from tests.vectors.conftest import Lake, check_avro

pytestmark = pytest.mark.slow

SETTINGS = {"lakeingest.source.envelope": "flattened"}
UP_TO_THE_KEY_CHANGE = 18
"""Events up to the end of the transaction that changes a key, before the first truncate.

The transform drops truncates, which END has counted: such a transaction stays incomplete.
"""

SOURCE = ("ts_ms", "snapshot", "db", "schema", "table", "sequence", "lsn")
NUMBERS = ("source_ts_ms", "source_lsn", "transaction_total_order")
WHOLE = ("d", "ts", *(f"__{name}" for name in NUMBERS))
"""Numbers that may be NULL."""

APART = 100
"""A schema of rows is registered under the number of that of their envelopes, and this."""


def flattened(event: dict[str, Any], *, without: str = "") -> list[dict[str, Any]]:
    """Return what is left of an event: ``rewrite`` for deletes, ``add.fields`` of the README."""
    value = event["v"]
    if value is None:
        return []
    if value.get("op") not in ("c", "r", "u", "d"):
        return [event]
    block = value["transaction"] or {}
    added = {
        "op": value["op"],
        **{f"source_{name}": value["source"].get(name) for name in SOURCE},
        "transaction_id": block.get("id"),
        "transaction_total_order": block.get("total_order"),
    }
    row = {
        **(value["after"] or value["before"]),
        "__deleted": "true" if value["op"] == "d" else "false",
        **{f"__{name}": field for name, field in added.items() if name != without},
    }
    return [{**event, "v": row}]


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let the raw events be flattened before they are written."""
    whole = raw_events.events

    def through(described: bool = False, **more: str) -> None:
        def events(*runs: str) -> Any:
            some = list(whole(*runs))[:UP_TO_THE_KEY_CHANGE]
            rows = [one for event in some for one in flattened(event, **more)]
            return [with_schema(one) for one in rows] if described else rows

        monkeypatch.setattr(raw_events, "events", events)

    return through


def with_schema(event: dict[str, Any]) -> dict[str, Any]:
    """Return a flattened row as JsonConverter writes it with schemas."""
    row = event["v"]
    if "__op" not in row:
        return event
    fields = [
        {
            "field": name,
            "type": "int64" if isinstance(value, int) or name in WHOLE else "string",
            "optional": name != "id",
        }
        for name, value in row.items()
    ]
    schema = {"type": "struct", "fields": fields, "optional": False, "name": "Value"}
    return {**event, "v": {"schema": schema, "payload": row}}


def row_schema(envelope: dict[str, Any]) -> dict[str, Any]:
    """Return the Avro schema of the rows of an envelope's schema, added fields behind theirs."""
    row = envelope["fields"][0]["type"][1]
    block = {"transaction": None, "source": dict.fromkeys(SOURCE), "op": "", "before": {}}
    added = [
        {"name": name, "type": ["null", "long" if name[2:] in NUMBERS else "string"]}
        for name in flattened({"v": {**block, "op": "c", "after": {}}})[0]["v"]
    ]
    return {**row, "namespace": envelope["namespace"], "fields": [*row["fields"], *added]}


class AvroRows:
    """Flattens the events of an Avro log, and registers what they are written with then."""

    def __init__(self) -> None:
        self.schemas = raw_events.registered()

    def flattened(self, event: dict[str, Any]) -> list[dict[str, Any]]:
        """See ``flattened``."""
        if not event["v"]:
            return []
        octets = bytes.fromhex(event["v"])
        number = int.from_bytes(octets[1:5], "big")
        written = self.schemas[number]
        if written["name"] != "Envelope":
            return [event]
        value = fastavro.schemaless_reader(
            io.BytesIO(octets[5:]), fastavro.parse_schema(written), None
        )
        schema = self.schemas.setdefault(number + APART, row_schema(written))
        (one,) = flattened({"v": value})
        return [{**event, "v": record(number + APART, schema, one["v"]).hex()}]

    def write(self, folder: Path) -> None:
        """Write the registry of a recorded folder."""
        write_schemas(folder, self.schemas)


@pytest.mark.soak
def test_rows_in_avro_leave_each_commit_as_the_source_had_it(
    lake: Callable[..., Lake], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, whole = AvroRows(), raw_events.events
    monkeypatch.setattr(
        raw_events, "events", lambda *runs: [one for e in whole(*runs) for one in rows.flattened(e)]
    )
    monkeypatch.setattr(conftest, "write_registry", rows.write)
    check_avro(lake("avro", settings={**SETTINGS, "lakeingest.source.format": "avro"}))


@pytest.mark.parametrize(
    "described", [pytest.param(False, id="bare"), further(True, id="with schemas")]
)
def test_rows_without_envelopes_leave_each_commit_as_the_source_had_it(
    lake: Callable[..., Lake], stream: Callable[..., None], described: bool
) -> None:
    stream(described)
    tables = lake("statements", settings=SETTINGS)
    before = {1: ("s1",), 2: ("s2",)}
    start = {**before, 3: ("c3",), 4: ("c4",)}
    assert tables.history("a", "id", "v") == [
        before,
        start,
        {**start, 1: ("u1",)},
        {1: ("u1",), 2: ("s2",), 30: ("c3",), 4: ("c4",)},
    ]
    assert tables.rows("b", "id", "v", "nn") == {2: ("y", 7)}


@with_all
@pytest.mark.parametrize("field", ["op", "source_sequence"])
def test_a_row_that_does_not_say_what_it_is_or_where_stops_the_run(
    lake: Callable[..., Lake], stream: Callable[..., None], field: str
) -> None:
    stream(without=field)
    with pytest.raises(DataError, match=r"lakeingest\.source\.envelope"):
        lake("statements", settings=SETTINGS)
