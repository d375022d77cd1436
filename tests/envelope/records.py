"""Records of the log for tests: from real vectors, or written out in a few words."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from lakeingest.decode.json.envelope import decode_envelope
from lakeingest.envelope import ChangeSpec, changes
from lakeingest.envelope.change import FAMILIES
from lakeingest.frame_schemas import RECORD

VECTORS = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Record:
    """One record; a value that is neither text nor bytes is written as JSON."""

    topic: str
    value: Any
    key: Any = None
    partition: int = 0
    offset: int = 0
    headers: Mapping[str, Any] = field(default_factory=dict)

    def row(self) -> tuple[Any, ...]:
        """Return the record in the order of ``RECORD``."""
        headers = [(name, _octets(value)) for name, value in self.headers.items()]
        key, value = _octets(self.key), _octets(self.value)
        return (self.topic, self.partition, self.offset, None, key, value, headers or None)


def _octets(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    return json.dumps(value, separators=(",", ":")).encode()


def frame(spark: SparkSession, records: Iterable[Record]) -> DataFrame:
    """Return records as a source gives them (``RECORD``)."""
    return spark.createDataFrame([record.row() for record in records], RECORD).coalesce(1)


def logged(spark: SparkSession, values: Iterable[Any]) -> DataFrame:
    """Return records of one partition with these values, all of one key."""
    return frame(spark, (Record("t", value, {"id": 1}, 0, n) for n, value in enumerate(values)))


def changed(
    spark: SparkSession, connector: str, values: Iterable[Any], *, event: bool = False, **spec: Any
) -> list[Row]:
    """Return what records with these values change, in the order of the log.

    Args:
        spark: The session.
        connector: The connector that sent them.
        values: Their values.
        event: Read the columns of Hudi's streamer, too.
        **spec: What else ``ChangeSpec`` says.
    """
    source = FAMILIES[connector].source
    envelopes = decode_envelope(logged(spark, values), event=event, source=source)
    rows = changes(envelopes, ChangeSpec(connector, event=event, **spec))
    return rows.orderBy("offset").collect()


def end_position(spark: SparkSession, connector: str, id_: str) -> str:
    """Return the position of an END of epoch 0."""
    of_family = FAMILIES[connector].end_position
    assert of_family is not None
    ids = spark.createDataFrame([(id_,)], "id string")
    row = ids.select(of_family(F.lit(0), F.col("id"))).first()
    assert row is not None
    return str(row[0])


def vectors(name: str) -> list[Record]:
    """Return the real events of ``data/<name>.jsonl``, each with its line number as offset."""
    lines = (VECTORS / f"{name}.jsonl").read_text("utf-8").splitlines()
    return [
        Record(line["topic"], line["v"], line["k"], 0, number, line["h"])
        for number, line in enumerate(map(json.loads, lines))
    ]


def recorded(folder: Path, topic: str) -> Iterator[dict[str, Any]]:
    """Yield the lines of one recorded topic: ``p``, ``o``, ``k``, ``v``, ``h``."""
    with gzip.open(folder / "topics" / f"{topic}.jsonl.gz", "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def postgresql_event(
    *,
    xid: int | None = 7,
    before: int | None = 100,
    lsn: int | None = 110,
    op: str = "c",
    table: str | None = "a",
    nth: int = 1,
    **source: Any,
) -> dict[str, Any]:
    """Return a PostgreSQL change event without its row."""
    sequence = json.dumps(
        [None if part is None else str(part) for part in (before, lsn)], separators=(",", ":")
    )
    block = None if xid is None else {"id": f"{xid}:{lsn}", "total_order": nth}
    placed = {"schema": "public", "table": table, "lsn": lsn, "sequence": sequence} | source
    return {"before": None, "after": {"id": 1}, "source": placed, "transaction": block, "op": op}


def binlog_event(
    transaction: str | None,
    *,
    file: str | None = "mysql-bin.000001",
    pos: int = 4,
    row: int = 0,
    op: str = "c",
    **source: Any,
) -> dict[str, Any]:
    """Return a MySQL or MariaDB change event without its row."""
    block = None if transaction is None else {"id": transaction, "total_order": 1}
    placed = {"db": "shop", "table": "a", "file": file, "pos": pos, "row": row} | source
    return {"before": None, "after": {"id": 1}, "source": placed, "transaction": block, "op": op}


def commit_lsn_event(
    commit_lsn: str | None, change_lsn: str | None, *, op: str = "c", **source: Any
) -> dict[str, Any]:
    """Return an SQL Server or Db2 change event without its row."""
    block = None if commit_lsn is None else {"id": commit_lsn, "total_order": 1}
    lsns = {"commit_lsn": commit_lsn, "change_lsn": change_lsn}
    placed = {"db": "shop", "schema": "dbo", "table": "a"} | lsns | source
    return {"before": None, "after": {"id": 1}, "source": placed, "transaction": block, "op": op}


def as_signed(number: int) -> int:
    """Return an unsigned number as Java's long has it."""
    return number - 2**64 if number >= 2**63 else number


def grpc_event(
    commit_time: int | None, record_time: int = 0, *, op: str = "c", **source: Any
) -> dict[str, Any]:
    """Return an event of YugabyteDB's gRPC connector without its row (``SourceInfoTest``)."""
    tablet = "2f6a1b0c9d4e4c0f8a7b6c5d4e3f2a1b"
    block = {"id": "4c3b2a19-5d4e-4f6a-8b7c-9d0e1f2a3b4c", "total_order": 1}
    placed = {
        "snapshot": "false",
        "sequence": '["1:2::0:5","1:2::0:5"]',
        "schema": "public",
        "table": "a",
        "txId": block["id"],
        "lsn": "1:2:keyStrValuc=:4:5",
        "commit_time": commit_time,
        "record_time": record_time,
        "tablet_id": tablet,
        "partition_id": f"000033f1000030008000000000004000.{tablet}",
    } | source
    return {"before": None, "after": {"id": 1}, "source": placed, "transaction": block, "op": op}


def oracle_event(
    commit_scn: str | None, *, tx: str = "02000a0037030000", op: str = "c", **source: Any
) -> dict[str, Any]:
    """Return an Oracle change event without its row."""
    block = {"id": tx, "total_order": 1}
    placed = {"db": "ORCLPDB1", "schema": "SHOP", "table": "A", "commit_scn": commit_scn} | source
    return {"before": None, "after": {"id": 1}, "source": placed, "transaction": block, "op": op}
