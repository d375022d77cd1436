"""A small log of PostgreSQL transactions, written out in a few words."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from lakeingest.position import after
from lakeingest.source.recorded import RecordedSource
from lakeingest.topic_names import TopicNames
from tests.logs.folder import line, write_log
from tests.logs.written import place_of

PREFIX = "t1"
TRANSACTIONS = f"{PREFIX}.transaction"

Row = tuple[str, int]
"""Table and partition."""


def topic(table: str) -> str:
    """Return a table's topic."""
    return f"{PREFIX}.public.{table}"


def above(number: int) -> str:
    """Return the position above every row of transaction ``number`` (from 1)."""
    return after(0, _commit(number) + 1, 0)


def _commit(number: int) -> int:
    return number * 100 + 99


@dataclass
class Log:
    """Topics as they are written.

    Attributes:
        first: First offset of every partition; more than zero where retention took what was before.
    """

    first: int = 0
    lines: dict[str, list[Any]] = field(default_factory=lambda: {TRANSACTIONS: []})
    _next: dict[Row, int] = field(default_factory=dict)

    def snapshot(self, row: Row, mark: str = "true") -> Log:
        """Write a row of the initial snapshot."""
        source = {"schema": "public", "table": row[0], "lsn": 1, "snapshot": mark, "ts_ms": 1}
        self._write(row, {"before": None, "after": {"id": 1}, "source": source, "op": "r"})
        return self

    def transaction(
        self, number: int, *rows: Row, end: bool = True, seconds: int = 0, gone: str = ""
    ) -> Log:
        """Write a transaction; ``gone``: tables whose rows retention took."""
        before = _commit(number - 1) if number > 1 else None
        self._mark({"status": "BEGIN", "id": f"{number}:{number * 100}"}, seconds)
        for order, row in enumerate(rows, 1):
            lsn = number * 100 + order
            value = {
                "before": None,
                "after": {"id": number},
                "source": place_of(f"public.{row[0]}", lsn, before, snapshot="false", ts_ms=1),
                "op": "c",
                "transaction": {"id": f"{number}:{lsn}", "total_order": order},
            }
            if row[0] not in gone:
                self._write(row, value)
        if end:
            counted = sorted(Counter(f"public.{table}" for table, _ in rows).items())
            collections = [{"data_collection": name, "event_count": n} for name, n in counted]
            over = {"status": "END", "id": f"{number}:{_commit(number)}", "ts_ms": 1}
            counts = {"event_count": len(rows), "data_collections": collections}
            self._mark({**over, **counts}, seconds)
        return self

    def source(self, spark: SparkSession, folder: Path, tables: Sequence[str]) -> RecordedSource:
        """Write the log and open it."""
        for name in tables:
            self.lines.setdefault(topic(name), [])
        write_log(folder, self.lines)
        topics = tuple(topic(name) for name in tables)
        return RecordedSource(spark, str(folder), TopicNames(PREFIX, topics), TRANSACTIONS)

    def _write(self, row: Row, value: Any) -> None:
        offset = self._next.get(row, self.first)
        self._next[row] = offset + 1
        entry = line(row[1], offset, json.dumps(value), json.dumps({"id": 1}))
        self.lines.setdefault(topic(row[0]), []).append(entry)

    def _mark(self, value: Any, seconds: int) -> None:
        offset = self._next.get((TRANSACTIONS, 0), 0)
        self._next[TRANSACTIONS, 0] = offset + 1
        entry = line(0, offset, json.dumps(value), json.dumps({"id": 1}), ts=seconds * 1000)
        self.lines[TRANSACTIONS].append(entry)
