r"""MariaDB's commits from its binary log, as ``mariadb-binlog`` prints it.

The server's own program decodes the rows (``DECODE-ROWS -vv``, full images); what is read here is
its text, line by line, one event group (GTID) after another. Columns come as numbers: names are
those of the table, to which columns are only ever added at the end.

The program prints a control character as ``\x0a`` and a backslash as itself, so a text that holds
these four characters cannot be told from a line break. No workload writes one.

A TRUNCATE commits by itself and is a commit here, too, as it is for the connector. Other DDL
changes no row and is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from tests.oracles.changes import Change, Commit, Field, Kind, Operation
from tests.oracles.tables import table_shape
from tests.workloads.source import Source

_OPTIONS = ("--base64-output=DECODE-ROWS", "-vv", "--skip-annotate-row-events")

_EVENT = re.compile(rb"#\d{6} .* end_log_pos (\d+) ")
_GTID = re.compile(rb"\tGTID (\d+-\d+-\d+) ")
_ROW = re.compile(rb"### (INSERT INTO|UPDATE|DELETE FROM) `(.+)`\.`(.+)`")
_VALUE = re.compile(rb"###   @(\d+)=(.*) /\* \S+ meta=\d+ nullable=\d is_null=(\d) \*/", re.DOTALL)
_USE = re.compile(rb"use `(.+)`/\*!\*/;")
_TRUNCATE = re.compile(rb"truncate\s+(?:table\s+)?(?:`?(\w+)`?\.)?`?(\w+)`?\s*", re.IGNORECASE)
_CONTROL = re.compile(rb"\\x([01][0-9a-f])")

_OPERATIONS: Mapping[bytes, Operation] = {
    b"INSERT INTO": "insert",
    b"UPDATE": "update",
    b"DELETE FROM": "delete",
}
_KINDS: Mapping[str, Kind] = {
    "tinyint": "sum",
    "smallint": "sum",
    "int": "sum",
    "bigint": "sum",
    "char": "crc",
    "varchar": "crc",
    "text": "crc",
    "longtext": "crc",
}

Columns = Sequence[tuple[str, Kind | None]]
"""A table's columns in their order, with how each is measured."""


class BinlogServer(Protocol):
    """What is needed of the rig's MariaDB."""

    def binlogs(self) -> Sequence[Any]:
        """Return the files of the binary log, in their order."""

    def open_binlog(self, name: str, *arguments: str) -> Any:
        """Start ``mariadb-binlog`` on one of them."""


def kind_of(type_name: str) -> Kind | None:
    """Return how a column of a MariaDB type such as ``bigint(20)`` is measured."""
    return _KINDS.get(type_name.partition("(")[0])


@dataclass(frozen=True)
class Group:
    """One event group of a file.

    Attributes:
        gtid: Its name.
        end: Where the next begins.
        touched: Whether it changed anything in the database, captured or not.
        changes: Changes of captured tables.
    """

    gtid: str
    end: int
    touched: bool
    changes: Sequence[Change]


class Binlog:
    """The commits of one database, from a place in the log on.

    Args:
        source: The database.
        captured: Bare names; changes of other tables are left out, their commits are not.
    """

    def __init__(self, source: Source, captured: Iterable[str]) -> None:
        self._source = source
        self._captured = tuple(captured)
        self._file = ""
        self._position = 0

    def begin(self) -> Any:
        """Remember the place; return a connection that sees the database as of it."""
        reader = self._source.connect()
        cursor = reader.cursor()
        cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        cursor.execute("SHOW STATUS LIKE 'binlog_snapshot_%'")
        place = {name.lower(): value for name, value in cursor.fetchall()}
        self._file = place["binlog_snapshot_file"]
        self._position = int(place["binlog_snapshot_position"])
        return reader

    def read(self) -> Iterator[Commit]:
        """Yield the commits since the last call, in the log's order, until there are no more."""
        with closing(self._source.connect()) as connection, connection.cursor() as cursor:
            cursor.execute("SHOW MASTER STATUS")
            last, stop = cursor.fetchone()[:2]
            # Asked for after the end of what will be read, so that no column is missing.
            tables = {table: self._columns(connection, table) for table in self._captured}
        server = cast("BinlogServer", self._source.server)
        names = [file.name for file in server.binlogs()]
        for name in names[names.index(self._file) : names.index(last) + 1]:
            if name != self._file:
                self._file, self._position = name, 4
            arguments = [*_OPTIONS, f"--start-position={self._position}"]
            if name == last:
                if self._position >= int(stop):
                    return
                arguments.append(f"--stop-position={stop}")
            for group in self._groups(server, name, arguments, tables):
                self._position = group.end
                if group.touched:
                    place: dict[str, int | str] = {"gtid": group.gtid, "file": name}
                    yield Commit({**place, "end_log_pos": group.end}, group.changes)

    def _groups(
        self,
        server: BinlogServer,
        name: str,
        arguments: Sequence[str],
        tables: Mapping[str, Columns],
    ) -> Iterator[Group]:
        process = server.open_binlog(name, *arguments)
        try:
            yield from groups(process.stdout, self._source.database, tables)
            said = process.stderr.read().decode(errors="replace")
            if process.wait():
                message = f"mariadb-binlog failed on {name}: {said}"
                raise RuntimeError(message)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
            process.stderr.close()

    def _columns(self, connection: Any, table: str) -> Columns:
        shape = table_shape(connection, "mariadb", self._source.database, table)
        return [(name, kind_of(kind)) for name, kind in shape.types.items()]


@dataclass
class _Reading:
    """The event group that is being read."""

    gtid: str
    touched: bool = False
    ddl: bool = False
    changes: list[Change] = field(default_factory=list)


def groups(lines: Iterable[bytes], database: str, tables: Mapping[str, Columns]) -> Iterator[Group]:
    """Yield the event groups that ``mariadb-binlog`` printed.

    Args:
        lines: What it printed.
        database: Whose changes are wanted.
        tables: Columns of the captured tables.
    """
    reading = _Reading("")
    used, end = "", 0
    row: _Row | None = None
    for raw in lines:
        line = raw.rstrip(b"\n")
        if line.startswith(b"###"):
            if start := _ROW.fullmatch(line):
                _finish(row, reading, tables)
                ours = start[2].decode() == database
                reading.touched |= ours
                row = _Row(_OPERATIONS[start[1]], start[3].decode()) if ours else None
            elif row is not None:
                row.read(line)
            continue
        if row is not None:
            _finish(row, reading, tables)
            row = None
        if event := _EVENT.match(line):
            end = int(event[1])
            if name := _GTID.search(line):
                reading = _Reading(name[1].decode(), ddl=line.endswith(b" ddl"))
        elif use := _USE.fullmatch(line):
            used = use[1].decode()
        elif line == b"COMMIT/*!*/;":
            yield Group(reading.gtid, end, reading.touched, reading.changes)
        elif reading.ddl and (emptied := _TRUNCATE.fullmatch(line)):
            where = (emptied[1] or used.encode()).decode()
            table = emptied[2].decode()
            changes = [Change("truncate", table)] if table in tables else []
            ours = where == database
            yield Group(reading.gtid, end, ours, changes if ours else [])


class _Row:
    """One row event as it is read: its images, by column number."""

    def __init__(self, operation: Operation, table: str) -> None:
        self.operation = operation
        self.table = table
        self._images: dict[bytes, list[tuple[int, bytes | None]]] = {}
        self._image: list[tuple[int, bytes | None]] = []

    def read(self, line: bytes) -> None:
        """Take in one line.

        Raises:
            ValueError: It is not what the program prints.
        """
        if line in {b"### WHERE", b"### SET"}:
            self._image = self._images.setdefault(line[4:], [])
            return
        value = _VALUE.fullmatch(line)
        if value is None:
            message = f"not a line of mariadb-binlog: {line[:200]!r}"
            raise ValueError(message)
        self._image.append((int(value[1]), None if value[3] == b"1" else value[2]))

    def change(self, columns: Columns) -> Change:
        """Return what was read."""
        before, after = self._named(b"WHERE", columns), self._named(b"SET", columns)
        return Change(self.operation, self.table, before, after)

    def _named(self, image: bytes, columns: Columns) -> dict[str, Field]:
        found = {}
        for number, value in self._images.get(image, []):
            name, kind = columns[number - 1]
            found[name] = Field(kind, None if value is None else _text(kind, value))
        return found


def _finish(row: _Row | None, reading: _Reading, tables: Mapping[str, Columns]) -> None:
    if row is not None and row.table in tables:
        reading.changes.append(row.change(tables[row.table]))


def _text(kind: Kind | None, value: bytes) -> str:
    if kind == "crc":
        raw = _CONTROL.sub(lambda match: bytes([int(match[1], 16)]), value[1:-1])
        return raw.decode("utf-8")
    # A negative number is followed by what it would be without a sign.
    return value.partition(b" ")[0].decode() if kind == "sum" else ""
