"""Small folders in the recordings format, written by a test."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Line = Mapping[str, Any]


def line(partition: int, offset: int, value: Any = "v", key: Any = "k", **more: Any) -> Line:
    """Return one recorded record."""
    return {"p": partition, "o": offset, "ts": 1_000 + offset, "k": key, "v": value, "h": []} | more


def write_topic(folder: Path, topic: str, lines: Iterable[Line]) -> Path:
    """Write one topic as the recorder does, and return its file."""
    path = folder / "topics" / f"{topic}.jsonl.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8", newline="\n") as out:
        for entry in lines:
            out.write(json.dumps(entry, separators=(",", ":"), ensure_ascii=False) + "\n")
    return path


def write_log(folder: Path, topics: Mapping[str, Iterable[Line]]) -> None:
    """Write topics, and a manifest with their bounds, which a run need not search for then."""
    spans: dict[str, dict[int, tuple[int, int]]] = {}
    for topic, entries in topics.items():
        lines = list(entries)
        write_topic(folder, topic, lines)
        offsets: dict[int, list[int]] = defaultdict(list)
        for entry in lines:
            offsets[entry["p"]].append(entry["o"])
        spans[topic] = {part: (min(of), max(of)) for part, of in offsets.items()} or {0: (0, -1)}
    write_manifest(folder, spans)


def write_schemas(folder: Path, schemas: Mapping[Any, Any]) -> None:
    """Write what a schema registry knows: schemas by id."""
    entries = {str(number): {"schema": schema} for number, schema in schemas.items()}
    (folder / "registry.json").write_text(json.dumps(entries), encoding="utf-8")


def write_manifest(folder: Path, partitions: Mapping[str, Mapping[int, tuple[int, int]]]) -> None:
    """Write a manifest: per topic and partition the first and last offset, (0, -1) if empty."""
    topics = {
        topic: {
            "gz_bytes": (folder / "topics" / f"{topic}.jsonl.gz").stat().st_size,
            "partitions": {
                str(number): {"first": first, "last": last}
                if last >= first
                else {"first": None, "last": None}
                for number, (first, last) in spans.items()
            },
        }
        for topic, spans in partitions.items()
    }
    (folder / "manifest.json").write_text(json.dumps({"topics": topics}), encoding="utf-8")
