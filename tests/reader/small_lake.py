"""A lake of three publications, made by a real run in seconds, for tests that only read.

Two tables: one with a composite key and a dot in a column's name, one without a key. PostgreSQL's
ids of transactions are ``xid:lsn``; the first and the last one have the same xid, as after four
thousand million others, and are therefore read by two runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.run import run_pipeline
from lakeingest.config import load_config
from tests.config.settings import recorded
from tests.logs.folder import Line, line, write_log
from tests.logs.written import place_of
from tests.shared_folder import shared_folder

LINES, NOTES = "public.lines", "public.notes"
FIRST, SECOND, THIRD = "753:1000", "754:2000", "753:3000"
"""The source's transactions, of batch 1, 2 and 3."""

_PREFIX = "small"
_KEY = ("order.id", "line")


@dataclass(frozen=True)
class _Change:
    collection: str
    op: str
    row: Mapping[str, object]


def _line(order: int, number: int, sku: str | None = None) -> Mapping[str, object]:
    return {"order.id": order, "line": number, "sku": sku}


_TRANSACTIONS: Mapping[str, Sequence[_Change]] = {
    FIRST: (
        _Change(LINES, "c", _line(10, 1, "c")),
        _Change(LINES, "c", _line(9, 2)),
        _Change(LINES, "c", _line(9, 1, "")),
        _Change(NOTES, "c", {"note": "n"}),
    ),
    SECOND: (_Change(LINES, "u", _line(10, 1, "d")),),
    THIRD: (_Change(LINES, "d", _line(9, 2)),),
}


@dataclass(frozen=True)
class SmallLake:
    """Where the lake lies, and the settings of the pipeline that made it."""

    path: str
    settings: Mapping[str, str]


@pytest.fixture(scope="session")
def small_lake(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, worker_id: str
) -> SmallLake:
    """The lake; who uses it changes nothing in it."""

    def make(folder: Path) -> None:
        for transactions, batches in (((FIRST, SECOND), 2), ((FIRST, SECOND, THIRD), 1)):
            _write_topics(folder / "log", transactions)
            summary = run_pipeline(spark, load_config(_settings(folder)))
            assert (summary.batches, summary.warnings) == (batches, ())

    folder = shared_folder(tmp_path_factory, worker_id, "small", make)
    return SmallLake(str(folder / "lake"), _settings(folder))


def _settings(folder: Path) -> Mapping[str, str]:
    return {
        **recorded(folder / "log", folder / "lake", _PREFIX),
        "lakeingest.pipeline.name": "small",
        "lakeingest.commit.max.transactions": "1",
        f"lakeingest.table.{LINES}.schema": "`order.id` BIGINT, line INT, sku STRING",
        f"lakeingest.table.{NOTES}.schema": "note STRING",
        f"lakeingest.table.{NOTES}.keyless": "append",
    }


def _write_topics(folder: Path, transactions: Sequence[str]) -> None:
    topics: dict[str, list[Line]] = {LINES: [], NOTES: [], "transaction": []}

    def put(topic: str, key: object, value: Mapping[str, object]) -> None:
        written = None if key is None else json.dumps(key)
        topics[topic].append(line(0, len(topics[topic]), json.dumps(value), written))

    before = 900
    for id_ in transactions:
        changes = _TRANSACTIONS[id_]
        commit = int(id_.partition(":")[2])
        put("transaction", {"id": id_}, {"status": "BEGIN", "id": id_, "ts_ms": commit})
        counts: dict[str, int] = {}
        for number, change in enumerate(changes, 1):
            table = change.collection
            counts[table] = counts.get(table, 0) + 1
            key = None if table == NOTES else {name: change.row[name] for name in _KEY}
            put(table, key, _envelope(change, id_, before, number))
        listed = [{"data_collection": name, "event_count": n} for name, n in counts.items()]
        end = {"status": "END", "id": id_, "ts_ms": commit, "event_count": len(changes)}
        put("transaction", {"id": id_}, {**end, "data_collections": listed})
        before = commit
    write_log(folder, {f"{_PREFIX}.{topic}": lines for topic, lines in topics.items()})


def _envelope(change: _Change, id_: str, before: int, number: int) -> Mapping[str, object]:
    xid, _, commit = id_.partition(":")
    lsn = int(commit) - 100 + number
    source = {
        "connector": "postgresql",
        "name": _PREFIX,
        "ts_ms": 1_000,
        "snapshot": "false",
        "db": "small",
        "txId": int(xid),
        **place_of(change.collection, lsn, before),
    }
    gone = change.op == "d"
    return {
        "before": change.row if gone else None,
        "after": None if gone else change.row,
        "source": source,
        # As Debezium: each record of a transaction has its own LSN behind the xid.
        "transaction": {"id": f"{xid}:{lsn}", "total_order": number},
        "op": change.op,
        "ts_ms": 1_000,
    }
