"""Cases of arrival as records of a connector, each case with keys of its own."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from typing import Any

from lakeingest.decode.encodings import Encodings
from tests.envelope.records import Record
from tests.vectors.arrival import Event, Left, Place, Vector

KEY = ("h", "id")
TOPIC = "t.docs"


def rounds(vectors: Sequence[Vector]) -> list[list[Record]]:
    """Return the records of each batch, those of all cases side by side; partition: the batch."""
    return [
        [
            record
            for case, vector in enumerate(vectors)
            if number < len(vector.rounds)
            for event in vector.rounds[number]
            for record in _records(case, event, number)
        ]
        for number in range(max(len(vector.rounds) for vector in vectors))
    ]


def _records(case: int, event: Event, number: int) -> Iterator[Record]:
    key = {"h": case, "id": event.id}
    if event.op == "0":
        yield Record(TOPIC, None, key, number)
        return
    row = {**key, **{name: _wire(name, value) for name, value in event.values.items()}}
    gone = event.op in ("d", "t")
    has_header = event.moved_from is not None and event.header
    headers = {"__debezium.oldkey": _old(case, event)} if has_header else {}
    value = {
        "before": key if event.op == "d" else None,
        "after": None if gone else row,
        "source": {"version": "3.4.1.Final", "name": "t", "ts_ms": 1, **_source(event)},
        "transaction": {"id": _transaction(event.at), "total_order": 1},
        "op": event.op,
    }
    yield Record(TOPIC, value, None if event.op == "t" else key, number, headers=headers)


def _old(case: int, event: Event) -> str:
    return json.dumps({"h": case, "id": event.moved_from})


def _source(event: Event) -> dict[str, Any]:
    snapshot = "true" if event.op == "r" else "false"
    if isinstance(event.at, int):
        sequence = json.dumps([str(event.at - 1), str(event.at)])
        placed = {"schema": "public", "lsn": event.at, "sequence": sequence.replace(" ", "")}
    else:
        file, pos = event.at
        placed = {"db": "public", "file": f"mysql-bin.{file:05d}", "pos": pos, "row": 0}
    return {**placed, "table": "docs", "snapshot": snapshot}


def _transaction(at: Place) -> str:
    return f"7:{at}" if isinstance(at, int) else f"file=mysql-bin.{at[0]:05d},pos={at[1]}"


def left_out(name: str) -> Any:
    """Return what stands in a column for a value that is left out."""
    raw = Encodings().placeholder_bytes()
    return {"blob": raw, "tags": [raw.decode()], "nums": list(raw)}.get(name, raw.decode())


def _wire(name: str, value: Any) -> Any:
    value = left_out(name) if value is Left.OUT else value
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value
