"""The same histories as records of a connector, so that decoding and positions are judged, too.

Where a history says "cut 2, statement 5", a connector says it in its own words, with all that makes
those words hard to compare: numbers as text, a binlog file that rolls over, log records of
interleaved transactions that go back, servers that take turns. What is claimed of a position is
only that these words come out in the order of the history.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakeingest import connectors
from lakeingest.decode.encodings import Encodings
from lakeingest.decode.json.envelope import decode_envelope
from lakeingest.decode.json.format import JsonFormat
from lakeingest.decode.json.rows import JsonRows
from lakeingest.engine.local_checkpoint import local_checkpoint
from lakeingest.envelope import ChangeSpec, changes
from lakeingest.envelope.change import FAMILIES
from lakeingest.plan.ordering import ordering_values, with_ordering_fields
from lakeingest.plan.spec import Ordering
from lakeingest.sink.contract import Sink
from tests.envelope.records import Record, as_signed, frame
from tests.law.history import COLLECTION, Case, Change, Item, change
from tests.law.ingest import DDL, Ingest
from tests.law.oracle import VALUES, Event, SourceTable, Update

Source = Callable[[int, int, bool], Mapping[str, Any]]
"""(cut, statement, whether of the initial snapshot) to the fields of ``source`` that say where.

Different histories have equal places for different keys, as rows of one COPY have.
"""

Transaction = Callable[[int, int], str]
"""(cut, statement) to ``transaction.id``."""

_LSN = 26_668_488
_MOST_PARTS = 2
"""Events of a statement: a changed key is two."""

_APART = 1000
"""Histories that can be told apart by their places, between one statement and the next."""


def _snapshot(snapshot: bool) -> str:
    return "true" if snapshot else "false"


@dataclass(frozen=True)
class Connector:
    """How a connector says where an event stands.

    Attributes:
        name: As ``lakeingest.source.connector`` has it.
        source: Fields of the source block.
        transaction: Id of the transaction of a statement.
        headers: Whether a changed key's create names the old one in a header.
        ordering: Fields that order rows in place of the source's log.
        cells: Whether rows come in cells, an update's without what it does not change.
    """

    name: str
    source: Source
    transaction: Transaction
    headers: bool = True
    ordering: tuple[str, ...] = ()
    cells: bool = False


def _postgresql(cut: int, statement: int, snapshot: bool) -> Mapping[str, Any]:
    # Every other transaction wrote before the one that committed before it: its LSNs go back.
    lsn = _LSN + 1000 * cut + 8 * statement - (900 if cut % 2 else 0)
    before = None if snapshot or cut == 0 else str(_LSN + 1000 * cut)
    return {
        "schema": "public",
        "table": "docs",
        "lsn": lsn,
        "sequence": json.dumps([before, str(lsn)], separators=(",", ":")),
        "snapshot": _snapshot(snapshot),
    }


def _without_headers(cut: int, statement: int, snapshot: bool) -> Mapping[str, Any]:
    return _postgresql(cut, _APART * statement, snapshot)


def _xid(cut: int, statement: int) -> str:
    return f"{700 + cut}:{_LSN + statement}"


def _binlog(cut: int, statement: int, snapshot: bool) -> dict[str, Any]:
    # The file rolls over from 999999 to 1000000 after the first cut, and positions start over.
    return {
        "db": "public",
        "table": "docs",
        "file": f"mysql-bin.{999_999 + cut:06d}",
        "pos": 4 + 100 * statement,
        "row": statement % 3,
        "snapshot": _snapshot(snapshot),
    }


def _compressed(cut: int, statement: int, snapshot: bool) -> dict[str, Any]:
    # One event of the binlog for all statements of a transaction, each of which has a row 0.
    return {**_binlog(cut, statement, snapshot), "pos": 4, "version": "3.7.0.Final"}


def _with_gtid(gtid: Callable[[int], str], placed: Source = _binlog) -> Source:
    def source(cut: int, statement: int, snapshot: bool) -> Mapping[str, Any]:
        return {**placed(cut, statement, snapshot), "gtid": gtid(cut)}

    return source


def _by_gtid(gtid: Callable[[int], str]) -> Transaction:
    return lambda cut, _: gtid(cut)


def _file(cut: int, _: int) -> str:
    return f"file=mysql-bin.{999_999 + cut:06d},pos=4"


def _uuid(cut: int) -> str:
    return f"0e4d5dcd-a33b-11ea-80f1-02010a22a99e:{9 + cut}"


def _tagged(cut: int) -> str:
    return f"0e4d5dcd-a33b-11ea-80f1-02010a22a99e:nightly:{99 + cut}"


def _domain(cut: int) -> str:
    # Two servers of one domain take turns; the sequence alone says the order.
    return f"0-{2 - cut % 2}-{999 + cut}"


def _lsn(high: int, low: int, width: int) -> str:
    return f"{high:08x}:{low:08x}:{7:0{width}x}"


def _by_commit(width: int) -> tuple[Source, Transaction]:
    """Return SQL Server's or Db2's words; LSNs pass from 9 to a and from f to 10."""

    def commit(cut: int) -> str:
        return _lsn(0xFE + cut, 0xAC0, width)

    def source(cut: int, statement: int, snapshot: bool) -> Mapping[str, Any]:
        return {
            "db": "shop",
            "schema": "public",
            "table": "docs",
            "commit_lsn": commit(cut),
            "change_lsn": None if snapshot else _lsn(0xFE + cut, 8 + statement, width),
            "event_serial_no": 2 - statement % 2,
            "snapshot": _snapshot(snapshot),
        }

    return source, lambda cut, _: commit(cut)


def _oracle(cut: int, statement: int, snapshot: bool) -> Mapping[str, Any]:
    # A change's own SCN goes back where its transaction began before the one that committed first.
    return {
        "db": "ORCLPDB1",
        "schema": "public",
        "table": "docs",
        "scn": str(9_999_900 + statement - (50 if cut % 2 else 0)),
        "commit_scn": str(9_999_999 + cut),
        "txSeq": statement,
        "snapshot": _snapshot(snapshot),
    }


def _without_a_log(cut: int, statement: int, snapshot: bool) -> Mapping[str, Any]:
    # As text the numbers go back from 9 to 10.
    return {
        "db": "public",
        "table": "docs",
        "ts_ms": 999 + cut,
        "step": 5 + statement,
        "snapshot": _snapshot(snapshot),
    }


def _time(step: int) -> int:
    # Passes 2^63, where Java's numbers turn negative, after the first cut.
    return as_signed(2**63 - 4096 + 4096 * step)


def _grpc(cut: int, statement: int, snapshot: bool) -> Mapping[str, Any]:
    # Rows of a snapshot have no mark. What a transaction wrote may be older than the last commit.
    written = (2**63 - 8192 * (1 + cut % 2)) + statement
    return {
        "schema": "public",
        "table": "docs",
        "lsn": f"1:{40 + cut}::0:{_time(cut)}",
        "commit_time": _time(0 if snapshot else 1 + cut),
        "record_time": _time(0) if snapshot else written,
        "snapshot": "false",
    }


def _by_hybrid_time(cut: int, statement: int, snapshot: bool) -> Mapping[str, Any]:
    # All rows of a transaction have its commit time, which END has plus one.
    lsn, last = (1_763_874_000_000_000 + cut << 12 for cut in (cut, cut - 1))
    before = None if snapshot or cut == 0 else str(last + 1)
    sequence = json.dumps([before, str(lsn)], separators=(",", ":"))
    return {**_postgresql(cut, statement, snapshot), "lsn": lsn, "sequence": sequence}


CONNECTORS: Mapping[str, Connector] = {
    "postgresql": Connector("postgresql", _postgresql, _xid),
    "postgresql, no headers": Connector("postgresql", _without_headers, _xid, headers=False),
    "mysql, files": Connector("mysql", _binlog, _file),
    "mysql, gtid": Connector("mysql", _with_gtid(_uuid), _by_gtid(_uuid)),
    "mysql, tagged gtid": Connector("mysql", _with_gtid(_tagged), _by_gtid(_tagged)),
    "mysql, compressed": Connector("mysql", _with_gtid(_uuid, _compressed), _by_gtid(_uuid)),
    "mysql, compressed files": Connector("mysql", _compressed, _file),
    "mariadb": Connector("mariadb", _with_gtid(_domain), _by_gtid(_domain)),
    "sqlserver": Connector("sqlserver", *_by_commit(4)),
    "db2": Connector("db2", *_by_commit(16)),
    "db2, short": Connector("db2", *_by_commit(4)),
    "oracle": Connector("oracle", _oracle, lambda cut, _: f"02000a00{cut:08x}"),
    "yugabytedb, pgoutput": Connector("yugabytedb", _postgresql, _xid),
    "yugabytedb, yboutput": Connector("yugabytedb", _by_hybrid_time, _xid, cells=True),
    "yugabytedb-grpc": Connector("yugabytedb-grpc", _grpc, lambda cut, _: f"{cut}", cells=True),
    "ordering columns": Connector(
        "mysql", _without_a_log, _file, ordering=("source.ts_ms", "source.step")
    ),
}


_TEXTS = {1: "a", 2: "A", 3: "a,id:b", 9: "á "}
"""Keys that are one only for who is careless with case, blanks or commas."""


@dataclass(frozen=True)
class Keys:
    """How a table's keys look: numbers, or text."""

    text: bool = False

    def shown(self, number: int) -> object:
        """Return the key of a history's row as it is in records and in the table."""
        return _TEXTS[number] if self.text else number

    def number(self, shown: object) -> int:
        """Return which row of a history a key of the table means."""
        return next(number for number in _TEXTS if self.shown(number) == shown)


def random_table(seed: int) -> tuple[str, Keys]:
    """Return columns, in any order, and keys."""
    rng = Random(seed)
    columns = DDL.split(", ")
    rng.shuffle(columns)
    keys = Keys(text=rng.random() < 0.5)
    ddl = ", ".join(columns)
    return (ddl.replace("id BIGINT", "id STRING") if keys.text else ddl), keys


class RawIngest(Ingest):
    """A table that is fed from a connector's records; a round is a partition of its topic."""

    def __init__(
        self,
        spark: SparkSession,
        sink: Sink,
        connector: Connector,
        *,
        keys: Keys = Keys(),  # noqa: B008
        **more: Any,
    ) -> None:
        """Bind to a sink and a connector."""
        super().__init__(spark, sink, **more)
        self._connector = connector
        self._session = spark
        self._keys = keys

        if connector.cells:
            self.table = replace(self.table, reader=JsonRows(cells=True))

    def number(self, key: Any) -> int:
        """See ``Ingest``."""
        return self._keys.number(key)

    def arriving(self, case: Case, history: int, number: int) -> Iterable[Record]:
        """Return round ``number`` of a case as records."""
        sent = partial_events(case) if self._connector.cells else case.events()
        for item in case.rounds[number] if number < len(case.rounds) else ():
            event = sent.get(item)
            if event is not None:
                placed = self._placed(case.cuts[item[0]], item, event.snapshot)
                if not self._connector.headers:
                    _move(placed["source"], history)
                for one in change(history, event, ""):
                    record = _record(one, placed, number, self._keys)
                    record = _celled(record) if self._connector.cells else record
                    yield record if self._connector.headers else replace(record, headers={})

    def _placed(self, cut: int, item: Item, snapshot: bool) -> dict[str, Any]:
        statement, part = item
        nth = _MOST_PARTS * statement + part + 1
        block = {"id": self._connector.transaction(cut, statement), "total_order": nth}
        source = {"version": "3.4.1.Final", "name": "t", "ts_ms": 1}
        return {
            "source": {**source, **self._connector.source(cut, statement, snapshot)},
            "transaction": None if snapshot else block,
        }

    def _frame(self, rounds: Sequence[Iterable[object]]) -> DataFrame:
        records = [
            replace(record, partition=number)
            for number, arriving in enumerate(rounds)
            for record in arriving
            if isinstance(record, Record)
        ]
        numbered = [replace(record, offset=offset) for offset, record in enumerate(records)]
        marks = tuple(mark.encode() for mark in Encodings().json_marks())
        name = self._connector.name
        ordering = Ordering(self._connector.ordering)
        source = with_ordering_fields(FAMILIES[name].source, ordering)
        envelopes = decode_envelope(frame(self._session, numbered), source=source)
        by_columns = ordering_values(JsonFormat(), ordering) if ordering else None
        partial = connectors.CONNECTORS[name].partial_rows
        may_omit = JsonFormat().may_omit(F.col("value")) if partial else None
        spec = ChangeSpec(name, marks=marks, ordering=by_columns, may_omit=may_omit)
        rows = changes(envelopes, spec)
        rows = rows.withColumn("batch", F.col("partition"))
        # What a connector calls the table is not what is judged here. Cut off from its plan, as a
        # run does: under it, those of the batches take many times as long.
        return local_checkpoint(rows.withColumn("collection", F.lit(COLLECTION)))


def partial_events(case: Case) -> dict[Item, Event]:
    """Return what YugabyteDB sends: updates of what they change, key changes as two whole rows."""
    table = SourceTable()
    sent: dict[Item, Event] = {}
    for number, statement in enumerate(case.statements):
        for part, event in enumerate(table.execute(statement) if statement is not None else ()):
            after = None if event.after is None else dict(table.rows[event.id or 0])
            if after is not None and isinstance(statement, Update):
                named = {*statement.changes, *statement.sent}
                after = {name: value for name, value in after.items() if name in named}
            sent[number, part] = replace(event, after=after, moved_from=None)
    return sent


def _celled(record: Record) -> Record:
    """Put each column of a record into a cell."""
    if record.value is None:
        return replace(record, key=_cells(record.key, record.key))
    before, after = record.value["before"], record.value["after"]
    # Of a deleted row the key is told, and that nothing else is known.
    gone = before and _cells(dict.fromkeys(_COLUMNS) | {"h": before["h"], "id": before["id"]})
    sides = {"before": gone, "after": after and _cells(after)}
    key = record.key and _cells(record.key, record.key)
    return replace(record, key=key, value={**record.value, **sides})


_COLUMNS = ("h", "id", *VALUES)


def _cells(row: Mapping[str, Any], names: Iterable[str] = _COLUMNS) -> dict[str, Any]:
    return {name: {"value": row[name], "set": True} if name in row else None for name in names}


def _move(source: dict[str, Any], history: int) -> None:
    """Give a history places of its own: a delete and a create at one place are one change."""
    before, _ = json.loads(source["sequence"])
    source["lsn"] += 8 * history
    source["sequence"] = json.dumps([before, str(source["lsn"])], separators=(",", ":"))


def _record(item: Change, placed: Mapping[str, Any], number: int, keys: Keys) -> Record:
    headers = (
        {} if item.moved_from is None else {"__debezium.oldkey": _keyed(item.moved_from, keys)}
    )
    key = None if item.key is None else _keyed(item.key, keys)
    if item.value is None:
        return Record("t.docs", None, key, number, 0, headers)
    envelope = json.loads(item.value)
    sides = {side: _keyed(json.dumps(envelope[side]), keys) for side in ("before", "after")}
    # As Debezium lays it out: what the rows decoder cuts off behind ``after`` is there.
    return Record("t.docs", {**sides, **placed, "op": item.op}, key, number, 0, headers)


def _keyed(text: str | bytes, keys: Keys) -> Any:
    row = json.loads(text)
    return row if row is None else {**row, "id": keys.shown(row["id"])}
