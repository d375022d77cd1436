"""A log of one table whose columns change, as Debezium writes it, in every form of record."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from lakeingest.apply.run import run_pipeline
from lakeingest.apply.summary import RunSummary
from lakeingest.config import load_config
from lakeingest.reader import Lake, open_lake
from tests.config.settings import recorded
from tests.decode.avro import METADATA, envelope_schema, record
from tests.logs.folder import write_log, write_schemas
from tests.logs.written import b64, mark_of, place_of
from tests.recordings.rust import DELETED, RustLake, queried

TABLE = "public.items"
_PREFIX = "t"
_NONE: Mapping[str, str] = {}
_DATABASE = {"version": "3.7.0.Final", "connector": "postgresql", "name": _PREFIX, "db": "d"}
"""With what a source block begins: the rows' decoder looks for its version."""

_AVRO = {
    "int32": "int",
    "int64": "long",
    "string": "string",
    "boolean": "boolean",
    "bytes": "bytes",
}
_KEY = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}


def column(column: str, kind: str = "string", **more: Any) -> dict[str, Any]:
    """Return a field of a Connect schema: ``optional``, ``default`` and the like are its own."""
    return {"field": column, "type": kind, "optional": True, **more}


ID = column("id", "int64", optional=False)


@dataclass
class Log:
    """What a connector writes of one table; each transaction with the columns of its time.

    Attributes:
        folder: Of the recording and of the lake.
        form: ``json``, ``json-schema`` or ``avro``.
    """

    folder: Path
    form: str = "json"
    _rows: list[dict[str, Any]] = field(default_factory=list)
    _ends: list[dict[str, Any]] = field(default_factory=list)
    _schemas: list[Any] = field(default_factory=lambda: [METADATA, _KEY])
    _lsn: int = 100

    def commit(
        self, columns: Sequence[Mapping[str, Any]], *changes: tuple[str, Mapping[str, Any]]
    ) -> None:
        """Write a transaction: changes are operation and row."""
        began, before = self._lsn + 1, self._lsn
        xid = len(self._ends)
        self._transaction("BEGIN", f"{xid}:{began}")
        for number, (op, row) in enumerate(changes, 1):
            self._lsn += 1
            block = {"id": f"{xid}:{self._lsn}", "total_order": number}
            fields = {**_DATABASE, "ts_ms": self._lsn, "snapshot": "false", "txId": xid}
            source = {**fields, **place_of(TABLE, self._lsn, before)}
            sides = {"before": None, "after": row} if op != "d" else {"before": row, "after": None}
            event = {**sides, "source": source, "transaction": block, "op": op, "ts_ms": self._lsn}
            self._write(self._rows, self._key(row["id"]), self._value(columns, event))
        self._lsn += 1
        self._transaction("END", f"{xid}:{self._lsn}", len(changes))

    def run(
        self, spark: SparkSession, settings: Mapping[str, str] = _NONE, *, apart: bool = False
    ) -> RunSummary:
        """Ingest what was written so far.

        Args:
            spark: The session.
            settings: By key, ``lakeingest.`` left out.
            apart: Whether each transaction is a batch of its own.
        """
        log = self.folder / "log"
        write_log(log, {f"{_PREFIX}.{TABLE}": self._rows, f"{_PREFIX}.transaction": self._ends})
        write_schemas(log, dict(enumerate(self._schemas, 1)))
        given = {
            "source.format": "avro" if self.form == "avro" else "json",
            "types.guess": "accept",
            **({"commit.max.transactions": "1"} if apart else {}),
            **settings,
        }
        properties = {f"lakeingest.{name}": value for name, value in given.items()}
        places = recorded(log, self.folder / "lake", _PREFIX)
        return run_pipeline(spark, load_config({**places, **properties}))

    def lake(self, spark: SparkSession) -> Lake:
        """Open the lake."""
        return open_lake(spark, str(self.folder / "lake"))

    def rows(self, *names: str) -> dict[int, tuple[Any, ...]]:
        """Return the named columns of the newest publication's rows, by id, as delta-rs reads them.

        Args:
            names: Columns of integers and texts.
        """
        shown = RustLake(self.folder / "lake", "public").newest()
        assert shown is not None
        at = DeltaTable(str(self.folder / "lake" / TABLE), version=shown.versions["items"])
        columns = ", ".join(f'"{name}"' for name in ("id", *names))
        cells = queried(at, f'SELECT {columns} FROM t WHERE NOT "{DELETED}"')  # noqa: S608
        rows = {id_: tuple(values) for id_, *values in zip(*cells.values(), strict=True)}
        assert len(rows) == len(cells["id"]), "a key stands in two rows"
        return rows

    def rows_by_our_reader(self, spark: SparkSession, *names: str) -> dict[int, tuple[Any, ...]]:
        """Return the same of the newest publication, of columns of any type and any format."""
        frame = self.lake(spark).table(TABLE).select("id", *names)
        return {row["id"]: tuple(row[1:]) for row in frame.collect()}

    def _transaction(self, status: str, id_: str, count: int | None = None) -> None:
        mark = mark_of(status, id_, TABLE, count, self._lsn)
        value = self._octets(METADATA, mark) if self.form == "avro" else json.dumps(mark)
        self._write(self._ends, json.dumps({"id": id_}), value)

    def _key(self, id_: int) -> Any:
        return self._octets(_KEY, {"id": id_}) if self.form == "avro" else json.dumps({"id": id_})

    def _value(self, columns: Sequence[Mapping[str, Any]], event: dict[str, Any]) -> Any:
        if self.form == "avro":
            return self._octets(envelope_schema(*map(_in_avro, columns)), event)
        event = _in_json(event)
        if self.form == "json":
            return json.dumps(event, separators=(",", ":"))
        fields = _in_json(list(columns))
        sides = [column(side, "struct", fields=fields) for side in ("before", "after")]
        schema = {"type": "struct", "fields": sides, "name": f"{_PREFIX}.{TABLE}.Envelope"}
        return json.dumps({"schema": schema, "payload": event}, separators=(",", ":"))

    def _octets(self, schema: Any, value: Any) -> dict[str, str]:
        if schema not in self._schemas:
            self._schemas.append(schema)
        return b64(record(self._schemas.index(schema) + 1, schema, value))

    @staticmethod
    def _write(lines: list[dict[str, Any]], key: Any, value: Any) -> None:
        number = len(lines)
        lines.append({"p": 0, "o": number, "ts": 1000 + number, "k": key, "v": value, "h": []})


def _in_json(value: Any) -> Any:
    """Return a value as JsonConverter writes it: octets are base64."""
    if isinstance(value, dict):
        return {name: _in_json(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_in_json(item) for item in value]
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _in_avro(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return a column as Confluent's converter does: a default's branch stands first."""
    kind: Any = {"type": _AVRO[item["type"]]}
    for named in ("name", "parameters"):
        if named in item:
            kind[f"connect.{named}"] = item[named]
    default = {"default": item["default"]} if "default" in item else {}
    if isinstance(default.get("default"), bytes):
        default = {"default": default["default"].decode("latin-1")}
    if default:
        kind["connect.default"] = default["default"]
    if not item["optional"]:
        return {"name": item["field"], "type": kind, **default}
    return {
        "name": item["field"],
        "type": [kind, "null"] if default else ["null", kind],
        **(default or {"default": None}),
    }
