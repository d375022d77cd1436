"""PostgreSQL's commits from a logical slot of its own, read with the plugin ``test_decoding``.

Another plugin, another slot and another parser than the connector's, so that the two can disagree.
The plugin prints every value with its type; a text ends at the quote that is not doubled.

A slot goes back when the server is killed: what was read since its last checkpoint comes again. So
commits are known by their position, and old ones are skipped.

A slot that is made while others truncate tables is sometimes born broken (PostgreSQL 15, one of 150
under the shop's load): decoding a transaction of those moments ends with ``could not map filenode
… to relation OID``, whenever it is tried. So a new slot is tried, up to the end of every
transaction that ran when it was made, before anyone relies on it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

import psycopg

from tests.oracles.changes import UNCHANGED, Change, Commit, Field, Kind, Value
from tests.workloads.source import Source

_ATTEMPTS = 20

_BORN_BROKEN = "could not map filenode"

_PATIENCE = 60.0
"""Seconds that transactions may take to end which ran when the slot was made."""

_CHUNK = 5_000
"""Changes asked for at a time; a transaction is never cut."""

_LINE = re.compile(
    r"table (?P<tables>.+?): (?P<operation>INSERT|UPDATE|DELETE|TRUNCATE):(?: (?P<rest>.*))?",
    re.DOTALL,
)
_COLUMN = re.compile(
    r"""(?P<name>"(?:[^"]|"")+"|[^\s\["]+)"""
    r"\[(?P<type>(?:[^\[\]]|\[\])*)\]:"
    r"(?P<value>'[^']*(?:''[^']*)*'|\S+)\s?"
)
_BEFORE, _AFTER = "old-key: ", "new-tuple: "

_NEXT_TRANSACTION = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
_OLDEST_TRANSACTION = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint"

_KINDS: Mapping[str, Kind] = {
    "smallint": "sum",
    "integer": "sum",
    "bigint": "sum",
    "boolean": "bool",
    "character varying": "crc",
    "character": "crc",
    "text": "crc",
}


def kind_of(type_name: str) -> Kind | None:
    """Return how a column of a PostgreSQL type is measured."""
    return _KINDS.get(type_name)


class Slot:
    """The second slot; made before the workload begins.

    Args:
        source: The database whose commits are read.
        captured: Bare names; changes of other tables are left out, their commits are not.
    """

    def __init__(self, source: Source, captured: frozenset[str]) -> None:
        self._source = source
        self._captured = captured
        # Slots are the cluster's and not the database's.
        self._name = f"oracle_{source.database}"
        self._newest = 0

    def create(self) -> Any:
        """Make the slot; return a connection that sees the database as of its beginning.

        A TRUNCATE is seen by older snapshots, too: such a table would be empty, and not as it was
        at the beginning. So truncates are locked out, and one that came in between costs a new
        slot. (Locking before the slot is made would wait for ever: making it waits for running
        transactions, and one of those may wait for the lock.)

        Raises:
            TimeoutError: Truncates came in between each time.
        """
        for _ in range(_ATTEMPTS):
            reader = self._create()
            for table in sorted(self._captured):
                reader.execute(f"LOCK TABLE {table} IN ACCESS SHARE MODE")
            emptied = "SELECT 1 FROM pg_class WHERE relname = ANY(%s) AND"
            emptied += " relnamespace = 'public'::regnamespace AND"
            emptied += " relfilenode <> pg_relation_filenode(oid)"
            if reader.execute(emptied, (list(self._captured),)).fetchone() is None:
                return reader
            reader.close()
            self.drop()
        message = f"a table was truncated in each of {_ATTEMPTS} attempts to see the beginning"
        raise TimeoutError(message)

    def _create(self) -> Any:
        """Make the slot; its snapshot lives until another connection has taken it over."""
        maker = self._source.connect(autocommit=True, replication="database")
        with closing(maker):
            row = maker.execute(
                f"CREATE_REPLICATION_SLOT {self._name} LOGICAL test_decoding (SNAPSHOT 'export')"
            ).fetchone()
            reader = self._source.connect()
            reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            reader.execute(f"SET TRANSACTION SNAPSHOT '{row[2]}'")
            return reader

    def is_sound(self) -> bool:
        """Tell whether the slot can be read; takes as long as the transactions that run now.

        To be asked when nothing of ``create`` is open any more: transactions wait for its locks.

        Raises:
            TimeoutError: A transaction did not end.
        """
        with closing(self._source.connect(autocommit=True)) as connection:
            (newest,) = connection.execute(_NEXT_TRANSACTION).fetchone()
            until = time.monotonic() + _PATIENCE
            while connection.execute(_OLDEST_TRANSACTION).fetchone()[0] < newest:
                if time.monotonic() > until:
                    message = f"a transaction ran for more than {_PATIENCE} s"
                    raise TimeoutError(message)
                time.sleep(0.02)
            try:
                connection.execute(
                    "SELECT count(*) FROM pg_logical_slot_peek_changes(%s, NULL, NULL)",
                    (self._name,),
                )
            except psycopg.errors.InternalError_ as error:
                if _BORN_BROKEN not in str(error):
                    raise
                return False
        return True

    def drop(self) -> None:
        """Drop the slot, without which the database could not be dropped."""
        with closing(self._source.connect(autocommit=True)) as connection:
            connection.execute("SELECT pg_drop_replication_slot(%s)", (self._name,))

    def read(self) -> Iterator[Commit]:
        """Yield the commits since the last call, in commit order, until there are no more."""
        with closing(self._source.connect(autocommit=True)) as connection:
            # Up to now and no further: under a workload the log would never end.
            (now,) = connection.execute("SELECT pg_current_wal_flush_lsn()").fetchone()
            while True:
                rows = connection.execute(
                    "SELECT lsn, xid, data FROM pg_logical_slot_get_changes(%s, %s, %s,"
                    " 'skip-empty-xacts', '1')",
                    (self._name, now, _CHUNK),
                ).fetchall()
                if not rows:
                    return
                yield from self._commits(rows)

    def _commits(self, rows: list[tuple[str, str, str]]) -> Iterator[Commit]:
        changes: list[Change] = []
        begin = 0
        for lsn, xid, data in rows:
            if data.startswith("BEGIN"):
                begin, changes = lsn_number(lsn), []
            elif data.startswith("COMMIT"):
                commit = lsn_number(lsn)
                if commit > self._newest:
                    self._newest = commit
                    identity = {"xid": int(xid), "begin_lsn": begin, "commit_lsn": commit}
                    yield Commit(identity, changes)
            else:
                changes += [
                    change
                    for change in parse_line(data, self._source.namespace)
                    if change.table in self._captured
                ]


def lsn_number(text: str) -> int:
    """Return a log position such as ``0/9660D08`` as the number that Debezium gives."""
    high, low = text.split("/")
    return (int(high, 16) << 32) + int(low, 16)


def parse_line(data: str, schema: str) -> list[Change]:
    """Return the changes of one line of the plugin: several for a truncate of several tables.

    Raises:
        ValueError: The line is not what the plugin prints.
    """
    if data.startswith("message:"):
        return []
    match = _LINE.fullmatch(data)
    if match is None:
        message = f"not a line of test_decoding: {data[:200]}"
        raise ValueError(message)
    tables = [name.partition(".") for name in match["tables"].split(", ")]
    names = [table.strip('"') for where, _, table in tables if where == schema]
    if match["operation"] == "TRUNCATE":
        return [Change("truncate", name) for name in names]
    rest = match["rest"]
    changes = []
    for name in names:
        if match["operation"] == "INSERT":
            changes.append(Change("insert", name, after=_columns(rest)))
        elif match["operation"] == "DELETE":
            changes.append(Change("delete", name, before=_columns(rest)))
        elif rest.startswith(_BEFORE):
            before, end = _columns_until(rest, len(_BEFORE))
            after = _columns(rest[end:].removeprefix(_AFTER))
            changes.append(Change("update", name, before=before, after=after))
        else:
            changes.append(Change("update", name, after=_columns(rest)))
    return changes


def _columns(text: str) -> dict[str, Field]:
    columns, end = _columns_until(text, 0)
    if end != len(text):
        message = f"not columns of test_decoding: {text[end : end + 200]}"
        raise ValueError(message)
    return columns


def _columns_until(text: str, start: int) -> tuple[dict[str, Field], int]:
    """Return the columns from ``start``, and where they end."""
    columns: dict[str, Field] = {}
    while match := _COLUMN.match(text, start):
        start = match.end()
        name = match["name"].strip('"').replace('""', '"')
        columns[name] = Field(kind_of(match["type"]), _value(match["value"]))
    return columns, start


def _value(text: str) -> Value:
    if text == "null":
        return None
    if text == "unchanged-toast-datum":
        return UNCHANGED
    return text[1:-1].replace("''", "'") if text.startswith("'") else text
