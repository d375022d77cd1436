"""What Hudi's streamer tells of events, in plain Python: its flattening, and whose word is last.

Written from the field mappings of Hudi 1.2's ``PostgresDebeziumSource`` and ``MysqlDebeziumSource``
and from RFC-39, without a look at the product.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

POSTGRESQL = {
    "_change_operation_type": "op",
    "_upstream_event_processed_ts_ms": "ts_ms",
    "db_shard_source_partition": "source.name",
    "db_schema_source_partition": "source.schema",
    "_event_origin_ts_ms": "source.ts_ms",
    "_event_tx_id": "source.txId",
    "_event_lsn": "source.lsn",
    "_event_xmin": "source.xmin",
}
BINLOG = {
    "_change_operation_type": "op",
    "_upstream_event_processed_ts_ms": "ts_ms",
    "db_shard_source_partition": "source.name",
    "_event_origin_ts_ms": "source.ts_ms",
    "_event_bin_file": "source.file",
    "_event_pos": "source.pos",
    "_event_row": "source.row",
}
SEQUENCE = "_event_seq"
OPERATION = "_change_operation_type"

Told = Mapping[str, Any]
Place = tuple[int, int]


def flattened(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return RFC-39's columns of an envelope, in the streamer's order."""
    mysql = "file" in event["source"]
    columns = {name: _at(event, path) for name, path in (BINLOG if mysql else POSTGRESQL).items()}
    if mysql:
        number = columns["_event_bin_file"].rpartition(".")[2]
        columns[SEQUENCE] = f"{number}.{columns['_event_pos']}"
    return columns


def _at(event: Mapping[str, Any], path: str) -> Any:
    first, _, rest = path.partition(".")
    return _at(event[first], rest) if rest else event.get(first)


def last_words(lines: Iterable[Mapping[str, Any]]) -> dict[str, list[Told]]:
    """Return what may be told of each key (JSON): the last event of a PostgreSQL log that it met.

    One word for a row that is there. A row that a truncate swept away is told as deleted, at the
    truncate's place; where it was deleted before, or truncated again, the truncate of the same
    batch may have come first.
    """
    last: dict[str, tuple[Place, Told]] = {}
    truncates: list[tuple[Place, Told]] = []
    for line in lines:
        if line["v"] is None:
            continue
        event = json.loads(line["v"])
        word = (_place(event), flattened(event))
        if event["op"] == "t":
            truncates.append((word[0], {**word[1], OPERATION: "d"}))
        elif line["k"] not in last or word[0] > last[line["k"]][0]:
            last[line["k"]] = word
    words = {}
    for key, (place, last_word) in last.items():
        later = [swept for at, swept in truncates if at > place]
        gone = last_word[OPERATION] == "d"
        words[key] = [last_word, *later] if gone or not later else later
    return words


def _place(event: Mapping[str, Any]) -> Place:
    before, own = json.loads(event["source"]["sequence"])
    return (int(before) if before else -1, int(own))
