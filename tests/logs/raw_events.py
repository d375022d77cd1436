"""Raw events of a real Debezium (3.4.1, PostgreSQL 15, pgoutput) as a log that a pipeline reads.

Each file holds what one connector process wrote, in its order, a JSON object a line: ``topic``,
``k``, ``v``, ``h``. A process that was killed and started again is two files, one behind the other.
The statements that caused them stand in the tests, which say what must be in the lake.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.logs.folder import Line, write_log, write_schemas

DATA = Path(__file__).parents[1] / "vectors" / "data"
PREFIX = "px"


def events(*runs: str) -> Iterator[dict[str, Any]]:
    """Yield the lines of these files, one file after another."""
    for run in runs:
        with gzip.open(DATA / f"{run}.jsonl.gz", "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def written_log(folder: Path, *runs: str) -> Path:
    """Write the events as a recorded log, each topic one partition; returns the folder."""
    topics: dict[str, list[Line]] = defaultdict(list)
    for event in events(*runs):
        topic = event["topic"]
        if topic.startswith(f"{PREFIX}."):
            topics[topic].append(_line(len(topics[topic]), event))
    write_log(folder, topics)
    return folder


def registered() -> dict[int, Any]:
    """Return the registered schemas by id."""
    with gzip.open(DATA / "registry.json.gz", "rt", encoding="utf-8") as file:
        return {int(number): json.loads(text) for number, text in json.load(file)["ids"].items()}


def write_registry(folder: Path) -> None:
    """Write the registered schemas beside the topics of an Avro log."""
    write_schemas(folder, registered())


def _line(offset: int, event: dict[str, Any]) -> Line:
    return {
        "p": 0,
        "o": offset,
        "ts": 1_795_255_535_000 + offset,
        "k": _field(event["k"]),
        "v": _field(event["v"]),
        "h": [[name, _text(value)] for name, value in (event.get("h") or {}).items()],
    }


def _field(value: Any) -> Any:
    """Return a key or value as recordings have it: text, or octets that the file shows in hex."""
    if isinstance(value, str):
        return {"b64": base64.b64encode(bytes.fromhex(value)).decode()}
    return None if value is None else _text(value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
