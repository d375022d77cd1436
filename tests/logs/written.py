"""Small logs in the recordings format, written transaction by transaction, for any connector."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from lakeingest.apply.run import run_pipeline
from lakeingest.apply.summary import RunSummary
from lakeingest.config import load_config
from lakeingest.config.model import PipelineConfig
from tests.config.settings import recorded
from tests.logs.folder import line, write_log

PIPELINE = "written"
PREFIX = "w"
COLUMNS = "id BIGINT, v BIGINT"

Record = tuple[Any, Any, list[list[str]], int]
"""Key, value, headers, and when it was written (milliseconds)."""


def b64(octets: bytes) -> dict[str, str]:
    """Return octets as the recordings have them."""
    return {"b64": b64encode(octets).decode()}


def mark_of(status: str, id_: str, collection: str, count: int | None, ms: int) -> dict[str, Any]:
    """Return a record of the transaction topic; without a count of rows it is a BEGIN."""
    listed = [{"data_collection": collection, "event_count": count}] if count else None
    transaction = {"status": status, "id": id_, "event_count": count}
    return {**transaction, "data_collections": listed, "ts_ms": ms}


def topic_of(collection: str) -> str:
    """Return the topic that Debezium makes for a table."""
    return f"{PREFIX}.{re.sub('[^A-Za-z0-9._-]', '_', collection)}"


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
        key: Whether the table has a key.
        more_key: What else is in the key, as columns and values.
    """

    collection: str
    id: int | str
    v: int | str | None
    source: Mapping[str, Any]
    op: str | None = None
    before: Mapping[str, int] | None = None
    key: bool = True
    more_key: Mapping[str, int] = field(default_factory=dict)

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


def place_of(collection: str, lsn: int, before: int | None, **more: Any) -> dict[str, Any]:
    """Return the source block of a row of PostgreSQL, behind the commit at LSN ``before``."""
    schema, _, name = collection.partition(".")
    commit_lsn = None if before is None else str(before)
    sequence = json.dumps([commit_lsn, str(lsn)], separators=(",", ":"))
    return {"schema": schema, "table": name, "lsn": lsn, "sequence": sequence, **more}


@dataclass
class WrittenLog:
    """A log that grows; each table has one partition.

    Attributes:
        folder: Where it is written.
        connector: As ``lakeingest.source.connector`` names it.
        run: ``runId`` of the connector that writes; null: it is too old to tell.
        declared: Whether the configuration declares the tables' columns.
        seconds: When the next records are written.
    """

    folder: Path
    connector: str
    run: str | None = None
    declared: bool = True
    seconds: int = 1
    _topics: dict[str, list[Record | None]] = field(default_factory=lambda: defaultdict(list))
    _collections: set[str] = field(default_factory=set)
    _clock: int = 1_000

    def put(self, sent: Sent, block: Mapping[str, Any] | None = None) -> None:
        """Write one record."""
        topic = topic_of(sent.collection)
        self._collections.add(sent.collection)
        headers = [["__debezium.context.runId", self.run]] if self.run else []
        key = json.dumps({"id": sent.id, **sent.more_key}) if sent.op != "t" and sent.key else None
        self._topics[topic].append((key, sent.value(block), headers, 1_000 * self.seconds))

    def rename(self, topic: str, other: str) -> None:
        """Give a topic another name, as a router does."""
        self._topics[other] = self._topics.pop(topic)

    def drop(self, collection: str) -> None:
        """Delete a table's topic."""
        topic = topic_of(collection)
        del self._topics[topic]
        (self.folder / "topics" / f"{topic}.jsonl.gz").unlink(missing_ok=True)

    def raw(self, collection: str, key: Any, value: Any) -> None:
        """Write one record as it is: octets, text, nothing at all, or anything else as JSON."""
        text = b64(value) if isinstance(value, bytes) else value
        body = text if text is None or isinstance(text, str) else json.dumps(text)
        text_of_key = None if key is None else json.dumps(key)
        self._topics[f"{PREFIX}.{collection}"].append((text_of_key, body, [], 1_000 * self.seconds))

    def spoil_key(self, collection: str, octets: bytes) -> None:
        """Give the newest record of a topic these octets for a key."""
        records = self._topics[f"{PREFIX}.{collection}"]
        newest = records[-1]
        assert newest is not None
        records[-1] = (b64(octets), *newest[1:])

    def begin(self, id_: str) -> None:
        """Write a BEGIN."""
        self.mark({"status": "BEGIN", "id": id_})

    def rows(self, id_: str, sent: Iterable[Sent]) -> None:
        """Write the rows of a transaction."""
        for number, row in enumerate(sent, 1):
            self.put(row, {"id": id_, "total_order": number, "data_collection_order": number})

    def end(self, id_: str, counts: Mapping[str, int]) -> None:
        """Write an END."""
        listed = [{"data_collection": name, "event_count": n} for name, n in counts.items()]
        total = sum(counts.values())
        self.mark({"status": "END", "id": id_, "event_count": total, "data_collections": listed})

    def transaction(self, id_: str, *sent: Sent) -> None:
        """Write a whole transaction."""
        counts: dict[str, int] = defaultdict(int)
        for row in sent:
            counts[row.collection] += 1
        self.begin(id_)
        self.rows(id_, sent)
        self.end(id_, counts)

    def mark(self, value: dict[str, Any]) -> None:
        """Write a record of the transaction topic."""
        self._clock += 1
        key = json.dumps({"id": value["id"]})
        marked = json.dumps({**value, "ts_ms": self._clock})
        self._topics[f"{PREFIX}.transaction"].append((key, marked, [], 1_000 * self.seconds))

    def marker(self, *topics: str) -> None:
        """Take an offset of each topic for no record, as Kafka's own transactions do."""
        for topic in topics:
            self._topics[f"{PREFIX}.{topic}"].append(None)

    def ingest(self, spark: SparkSession, lake: Path, **settings: str) -> RunSummary:
        """Write what there is and run over it to the end."""
        return run_pipeline(spark, self.configured(lake, **settings))

    def configured(self, lake: Path, **settings: str) -> PipelineConfig:
        """Write what there is and return the pipeline that reads it."""
        topics = {
            topic: [
                line(0, n, record[1], record[0], h=record[2], ts=record[3] + n)
                for n, record in enumerate(records)
                if record is not None
            ]
            for topic, records in self._topics.items()
        }
        write_log(self.folder, topics)
        declared = self._collections if self.declared else ()
        properties = {
            **recorded(self.folder, lake, PREFIX),
            "lakeingest.pipeline.name": PIPELINE,
            "lakeingest.source.connector": self.connector,
            "lakeingest.types.guess": "accept",
            **{f"lakeingest.table.{name}.schema": COLUMNS for name in declared},
            **{f"lakeingest.{_dotted(key)}": value for key, value in settings.items()},
        }
        return load_config(properties)


def _dotted(key: str) -> str:
    return key if key.startswith("table.") else key.replace("_", ".")


def change(name: str, lsn: int) -> Sent:
    """Return PostgreSQL's change of row 1 of a table: an insert at LSN 100, later an update."""
    place = place_of(f"public.{name}", lsn, lsn - 100 if lsn > 100 else None)
    return Sent(f"public.{name}", 1, lsn, place, "c" if lsn == 100 else "u")


def snapshot_row(name: str, id_: int, v: int | str, commit: int) -> Sent:
    """Return a row that an incremental snapshot sends, 50 behind the commit at LSN ``commit``."""
    place = place_of(f"public.{name}", commit + 50, commit, snapshot="incremental")
    return Sent(f"public.{name}", id_, v, place, "r")
