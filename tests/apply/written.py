"""Small logs in the recordings format, written transaction by transaction, for any connector."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from lakeingest.apply.run import run_pipeline
from lakeingest.apply.summary import RunSummary
from lakeingest.config import load_config
from lakeingest.reader import open_lake
from tests.source.folder import line, write_topic

PREFIX = "w"
COLUMNS = "id BIGINT, v BIGINT"

Record = tuple[Any, Any, list[list[str]]]
"""Key, value and headers."""


@dataclass(frozen=True)
class Sent:
    """One change of a row.

    Attributes:
        collection: Its table.
        id: Its key.
        v: Its value; null: it is deleted.
        source: Its place, as the connector tells it.
        op: What was done; by default an update or a delete.
        before: The row before it, where REPLICA IDENTITY is FULL.
    """

    collection: str
    id: int | str
    v: int | None
    source: Mapping[str, Any]
    op: str | None = None
    before: Mapping[str, int] | None = None

    def value(self, block: Mapping[str, Any] | None) -> str:
        """Return the envelope."""
        after = None if self.v is None else {"id": self.id, "v": self.v}
        return json.dumps(
            {
                "before": self.before,
                "after": after,
                "source": {"name": PREFIX, "ts_ms": 1_000, "snapshot": "false", **self.source},
                "transaction": block,
                "op": self.op or ("d" if after is None else "u"),
                "ts_ms": 1_000,
            }
        )


@dataclass
class WrittenLog:
    """A log that grows; each table has one partition.

    Attributes:
        folder: Where it is written.
        connector: As ``lakeingest.source.connector`` names it.
        run: ``runId`` of the connector that writes; null: it is too old to tell.
    """

    folder: Path
    connector: str
    run: str | None = None
    _topics: dict[str, list[Record]] = field(default_factory=lambda: defaultdict(list))
    _clock: int = 1_000

    def put(self, sent: Sent, block: Mapping[str, Any] | None = None) -> None:
        """Write one record."""
        topic = f"{PREFIX}.{sent.collection}"
        headers = [["__debezium.context.runId", self.run]] if self.run else []
        key = None if sent.op == "t" else json.dumps({"id": sent.id})
        self._topics[topic].append((key, sent.value(block), headers))

    def begin(self, id_: str) -> None:
        """Write a BEGIN."""
        self._mark({"status": "BEGIN", "id": id_})

    def rows(self, id_: str, sent: Iterable[Sent]) -> None:
        """Write the rows of a transaction."""
        for number, row in enumerate(sent, 1):
            self.put(row, {"id": id_, "total_order": number, "data_collection_order": number})

    def end(self, id_: str, counts: Mapping[str, int]) -> None:
        """Write an END."""
        listed = [{"data_collection": name, "event_count": n} for name, n in counts.items()]
        total = sum(counts.values())
        self._mark({"status": "END", "id": id_, "event_count": total, "data_collections": listed})

    def transaction(self, id_: str, *sent: Sent) -> None:
        """Write a whole transaction."""
        counts: dict[str, int] = defaultdict(int)
        for row in sent:
            counts[row.collection] += 1
        self.begin(id_)
        self.rows(id_, sent)
        self.end(id_, counts)

    def _mark(self, value: dict[str, Any]) -> None:
        self._clock += 1
        key = json.dumps({"id": value["id"]})
        marked = json.dumps({**value, "ts_ms": self._clock})
        self._topics[f"{PREFIX}.transaction"].append((key, marked, []))

    def ingest(self, spark: SparkSession, lake: Path, **settings: str) -> RunSummary:
        """Write what there is and run over it to the end."""
        for topic, records in self._topics.items():
            lines = (
                line(0, n, value, key, h=headers) for n, (key, value, headers) in enumerate(records)
            )
            write_topic(self.folder, topic, lines)
        (self.folder / "manifest.json").write_text(json.dumps({"topics": {}}), "utf-8")
        collections = {topic.removeprefix(f"{PREFIX}.") for topic in self._topics} - {"transaction"}
        properties = {
            "lakeingest.pipeline.name": "written",
            "lakeingest.source.path": str(self.folder),
            "lakeingest.source.connector": self.connector,
            "lakeingest.source.topic.prefix": PREFIX,
            "lakeingest.target.path": str(lake),
            **{f"lakeingest.table.{name}.schema": COLUMNS for name in collections},
            **{f"lakeingest.{key.replace('_', '.')}": value for key, value in settings.items()},
        }
        return run_pipeline(spark, load_config(properties))


def table(spark: SparkSession, lake: Path, collection: str) -> dict[int, int]:
    """Return a published table: key to value."""
    rows = open_lake(spark, str(lake)).snapshot().table(collection).collect()
    return {row["id"]: row["v"] for row in rows}
