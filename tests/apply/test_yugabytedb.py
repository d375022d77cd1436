"""YugabyteDB from log to lake: rows in cells, updates that name only what they change.

The table, its statements and the events of each replica identity are those of
``YugabyteReplicaIdentityIT`` (``yugabyte/debezium``); the schemas those of its
``PGTableSchemaBuilder``, in JSON as JsonConverter writes them and in Avro as AvroData does. What
the server sends for an update is in ``cdcsdk_producer.cc`` (``yugabyte/yugabyte-db``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import lakeingest
from lakeingest.apply.run import run_pipeline
from lakeingest.config import load_config
from tests.config.settings import recorded
from tests.decode.avro import METADATA, envelope_schema, record
from tests.logs.changing import column
from tests.logs.folder import Line, line, write_log, write_schemas
from tests.logs.written import b64, mark_of, place_of

pytestmark = [pytest.mark.slow, pytest.mark.soak]

TOPIC = "shop.public.orders"
DDL = "pk INT, aa INT, bb STRING"
DATABASE = {"version": "2.5.2.ybpg.20241.1", "connector": "postgresql", "name": "shop"}
"""With what a source block begins: the rows' decoder looks for its version."""

Row = dict[str, Any]
Written = tuple[Any, Any]
"""Value and key of a record, as the recordings have them."""


def cells(pk: int, **named: Any) -> Row:
    row = {"pk": pk, **named}
    return {
        name: {"value": row[name], "set": True} if name in row else None
        for name in ("pk", "aa", "bb")
    }


def gone(pk: int) -> Row:
    """Return the row before a delete: only its key is known, the rest are set NULLs."""
    return cells(pk, aa=None, bb=None)


def _connect_cell(name: str, kind: str) -> dict[str, Any]:
    optional = name != "pk"
    parts = [column("value", kind, optional=optional), column("set", "boolean", optional=False)]
    return {"type": "struct", "fields": parts, "optional": optional, "name": name, "field": name}


_KINDS = {"pk": "int32", "aa": "int32", "bb": "string"}
_CELLS = [_connect_cell(name, kind) for name, kind in _KINDS.items()]
_ROW = {"fields": _CELLS, "name": f"{TOPIC}.Value"}
_SIDES = [column(side, "struct", **_ROW) for side in ("before", "after")]
CONNECT = {"type": "struct", "fields": _SIDES, "optional": False, "name": f"{TOPIC}.Envelope"}
CONNECT_KEY = {"type": "struct", "fields": _CELLS[:1], "optional": False, "name": f"{TOPIC}.Key"}


def _avro_cell(name: str, kind: str) -> dict[str, Any]:
    optional = name != "pk"
    value = {"name": "value", "type": ["null", kind] if optional else kind}
    fields = [value, {"name": "set", "type": "boolean"}]
    cell = {"type": "record", "name": name, "namespace": "", "fields": fields}
    return {"name": name, "type": ["null", cell] if optional else cell}


_PK = _avro_cell("pk", "int")
AVRO = envelope_schema(_PK, _avro_cell("aa", "int"), _avro_cell("bb", "string"))
AVRO_KEY = {"type": "record", "name": "Key", "namespace": TOPIC, "fields": [_PK]}


def _text(value: Any) -> str:
    # As Jackson writes it, and as the rows decoder looks for it.
    return json.dumps(value, separators=(",", ":"))


def _plain(value: Row, key: Row) -> Written:
    return _text(value), _text(key)


def _described(value: Row, key: Row) -> Written:
    whole = {"schema": CONNECT, "payload": value}
    return _text(whole), _text({"schema": CONNECT_KEY, "payload": key})


def _octets(value: Row, key: Row) -> Written:
    return b64(record(2, AVRO, value)), b64(record(1, AVRO_KEY, key))


FORMATS: Mapping[str, Callable[[Row, Row], Written]] = {
    "json": _plain,
    "json with schemas": _described,
    "avro": _octets,
}


@dataclass
class Log:
    """A recorded folder that grows by transactions.

    Attributes:
        folder: Where it is.
        format: One of ``FORMATS``.
    """

    folder: Path
    format: str = "json"
    rows: list[Line] = field(default_factory=list)
    ends: list[Line] = field(default_factory=list)
    _lsn: int = 5
    _last: int | None = None

    def commit(self, *changes: tuple[str, Row | None, Row | None]) -> None:
        """Write a transaction of changes: operation, row before, row after."""
        xid = 2 + len(self.ends) // 2
        self._mark("BEGIN", f"{xid}:{self._lsn}", None)
        for order, change in enumerate(changes, 1):
            self._lsn += 1
            self._put(f"{xid}:{self._lsn}", order, *change)
        # The end of a commit's record, one above its LSN.
        self._lsn += 2
        self._last = self._lsn
        self._mark("END", f"{xid}:{self._lsn}", len(changes))

    def _put(self, id_: str, order: int, op: str, before: Row | None, after: Row | None) -> None:
        at = {"ts_ms": 1_763_874_000_000, "snapshot": "false", "db": "yugabyte"}
        place = place_of("public.orders", self._lsn, self._last, xmin=None)
        source = {**DATABASE, **at, "txId": int(id_.partition(":")[0]), **place}
        block = {"id": id_, "total_order": order, "data_collection_order": order}
        value = {"before": before, "after": after, "source": source, "op": op, "ts_ms": 1}
        key = {"pk": (after or before or {})["pk"]}
        written, named = FORMATS[self.format]({**value, "transaction": block}, key)
        self.rows.append(line(0, len(self.rows), written, named))

    def _mark(self, status: str, id_: str, count: int | None) -> None:
        value = mark_of(status, id_, "public.orders", count, 5)
        marked: Any = b64(record(3, METADATA, value)) if self.format == "avro" else _text(value)
        self.ends.append(line(0, len(self.ends), marked, None))

    def ingest(
        self, spark: SparkSession, lake: Path, **settings: str
    ) -> dict[int, tuple[Any, Any]]:
        """Run over what there is to the end; return the table."""
        write_log(self.folder, {TOPIC: self.rows, "shop.transaction": self.ends})
        write_schemas(self.folder, {1: AVRO_KEY, 2: AVRO, 3: METADATA})
        properties = {
            **recorded(self.folder, lake),
            "lakeingest.source.format": "avro" if self.format == "avro" else "json",
            "lakeingest.source.connector": "yugabytedb",
            **{f"lakeingest.{key}": value for key, value in settings.items()},
        }
        if self.format == "json":
            properties["lakeingest.table.public.orders.schema"] = DDL
        run_pipeline(spark, load_config(properties))
        return shown(spark, lake)


def shown(spark: SparkSession, lake: Path, batch: int | None = None) -> dict[int, tuple[Any, Any]]:
    """Return the table of a publication, by default the newest one."""
    rows = lakeingest.open(spark, str(lake)).snapshot(batch).table("public.orders").collect()
    return {row["pk"]: (row["aa"], row["bb"]) for row in rows}


TEXT = "random text value"


@pytest.mark.parametrize("format_", FORMATS)
def test_updates_of_what_they_change_leave_the_rest_as_it_was(
    spark: SparkSession, tmp_path: Path, format_: str
) -> None:
    log, lake = Log(tmp_path / "log", format_), tmp_path / "lake"
    log.commit(*(("c", None, cells(pk, aa=22, bb=TEXT)) for pk in (1, 2, 3, 4)))
    # In one format all comes in one batch, in the others what is filled is in the lake: of
    # another batch of the same run, or of earlier ones.
    if format_ == "avro":
        assert log.ingest(spark, lake) == dict.fromkeys((1, 2, 3, 4), (22, TEXT))
    log.commit(("u", None, cells(1, aa=12345)))
    # A key that changes is deleted and inserted, the whole row, in two events without headers.
    log.commit(("d", gone(2), None), ("c", None, cells(20, aa=22, bb=TEXT)))
    log.commit(("d", gone(3), None))
    changed = {1: (12345, TEXT), 4: (22, TEXT), 20: (22, TEXT)}
    if format_ == "avro":
        assert log.ingest(spark, lake) == changed
    log.commit(("u", None, cells(1, aa=None)), ("u", None, cells(20, bb="new")))
    # REPLICA IDENTITY DEFAULT and FULL send whole rows; FULL and CHANGE_OLD_NEW what was before.
    log.commit(("u", cells(4, aa=22, bb=TEXT), cells(4, aa=23, bb=TEXT)))
    log.commit(("u", cells(4, bb=TEXT), cells(4, bb=None)))
    # What is inserted again has nothing of what was deleted.
    log.commit(("c", None, cells(3, aa=1)), ("u", None, cells(3, aa=2)))
    expected = {1: (None, TEXT), 3: (2, None), 4: (23, None), 20: (22, "new")}
    if format_ != "json":
        assert log.ingest(spark, lake) == expected
        return
    assert log.ingest(spark, lake, **{"commit.max.transactions": "4"}) == expected
    assert shown(spark, lake, 1) == changed
