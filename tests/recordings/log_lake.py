"""Every version of every table, read from the log by the words of the Delta protocol alone.

A table with thousands of versions takes an engine a second for each. Here each entry of the log is
applied to what the entries before it left: the live files, and which of their rows are hidden. No
code of lakeingest, Delta or delta-rs has a part in it, but for the Parquet reader. Each entry must
be sound: a file that is removed was live with that vector, no file is added that is live,
and a vector hides as many rows as it says.
"""

from __future__ import annotations

import json
import struct
import uuid
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq

from tests.recordings.oracle import Measures, Totals
from tests.recordings.rust import DELETED, RustLake, columns_of, measure_of
from tests.recordings.totals import Publication

_MAGIC = 1681511377
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def hidden_rows(folder: Path, vector: Mapping[str, Any] | None) -> frozenset[int]:
    """Return the indexes of the rows that a vector in a file hides (PROTOCOL.md, Deletion Vectors).

    Raises:
        ValueError: The vector is damaged, or of a kind that lakeingest must not write.
    """
    if vector is None:
        return frozenset()
    octets = _octets(folder / vector_path(vector))
    start, size = vector["offset"], vector["sizeInBytes"]
    (length,) = struct.unpack_from(">i", octets, start)
    body = octets[start + 4 : start + 4 + length]
    (checksum,) = struct.unpack_from(">I", octets, start + 4 + length)
    _demand(length == size and checksum == zlib.crc32(body), "a vector's size or checksum is wrong")
    rows = _bitmap_array(body)
    says_so = len(rows) == vector["cardinality"]
    _demand(says_so, "a vector hides another number of rows than it says")
    return rows


def _demand(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)


def vector_path(vector: Mapping[str, Any]) -> str:
    """Return the path of a vector's file in the table's folder.

    Raises:
        ValueError: The vector is of a kind that lakeingest must not write.
    """
    kind = vector["storageType"]
    _demand(kind == "u", f"a vector of storage type {kind}")
    encoded = vector["pathOrInlineDv"]
    prefix, text = encoded[:-20], encoded[-20:]
    return f"{prefix}/deletion_vector_{uuid.UUID(bytes=_z85(text))}.bin".removeprefix("/")


@lru_cache(maxsize=4)
def _octets(path: Path) -> bytes:
    return path.read_bytes()


def _z85(text: str) -> bytes:
    octets = b""
    for start in range(0, len(text), 5):
        number = 0
        for character in text[start : start + 5]:
            number = number * 85 + _Z85.index(character)
        octets += struct.pack(">I", number)
    return octets


def _bitmap_array(body: bytes) -> frozenset[int]:
    magic, number = struct.unpack_from("<iq", body)
    _demand(magic == _MAGIC, "a bitmap without its magic number")
    place = 12
    rows: set[int] = set()
    for _ in range(number):
        (high,) = struct.unpack_from("<I", body, place)
        place = _bitmap(body, place + 4, high << 32, rows)
    return frozenset(rows)


def _bitmap(body: bytes, place: int, base: int, rows: set[int]) -> int:
    """Read one 32-bit bitmap (the roaring format's specification); return where it ends."""
    (cookie,) = struct.unpack_from("<I", body, place)
    place += 4
    if cookie & 0xFFFF == 12347:
        size = (cookie >> 16) + 1
        flags = body[place : place + (size + 7) // 8]
        is_run = [bool(flags[index // 8] >> index % 8 & 1) for index in range(size)]
        place += (size + 7) // 8
        has_offsets = size >= 4
    else:
        _demand(cookie == 12346, "a bitmap without its cookie")
        (size,) = struct.unpack_from("<I", body, place)
        place, is_run, has_offsets = place + 4, [False] * size, True
    heads = struct.unpack_from(f"<{2 * size}H", body, place)
    place += 4 * size + (4 * size if has_offsets else 0)
    for index in range(size):
        first, number = base + (heads[2 * index] << 16), heads[2 * index + 1] + 1
        if is_run[index]:
            (count,) = struct.unpack_from("<H", body, place)
            runs = struct.unpack_from(f"<{2 * count}H", body, place + 2)
            for begin, more in zip(runs[::2], runs[1::2], strict=True):
                rows.update(range(first + begin, first + begin + more + 1))
            place += 2 + 4 * count
        elif number > 4096:
            bits = int.from_bytes(body[place : place + 8192], "little")
            rows.update(first + bit for bit in range(65536) if bits >> bit & 1)
            place += 8192
        else:
            rows.update(first + low for low in struct.unpack_from(f"<{number}H", body, place))
            place += 2 * number
    return place


class _File:
    """A data file: what each of its rows adds to each measure, and the totals of those shown."""

    def __init__(self, path: Path, measures: Iterable[str], deleted: str) -> None:
        present = set(pq.read_schema(path).names)
        names = [name for name in measures if columns_of(name) <= present]
        columns = {deleted, *(column for name in names for column in columns_of(name))}
        values = pq.read_table(path, columns=sorted(columns), partitioning=None).to_pydict()
        rows = [
            {**{name: [column[row]] for name, column in values.items()}, DELETED: [False]}
            for row in range(len(values[deleted]))
        ]
        self.number = len(rows)
        self._adds = [
            {} if gone else {name: measure_of(name, row) for name in names}
            for row, gone in zip(rows, values[deleted], strict=True)
        ]
        self._hidden: frozenset[int] = frozenset()
        self._totals: Counter[str] = Counter()
        for adds in self._adds:
            self._totals.update(adds)

    def totals(self, hidden: frozenset[int]) -> Measures:
        """Return the totals of the rows that are not hidden."""
        for row in hidden - self._hidden:
            self._totals.subtract(self._adds[row])
        for row in self._hidden - hidden:
            self._totals.update(self._adds[row])
        self._hidden = hidden
        return dict(self._totals)


@dataclass
class TableLog:
    """Applies the entries of one table's log, from the first one on.

    Attributes:
        folder: The table's folder.
        measures: What to compute.
        deleted: Name of the column that marks deleted rows.
    """

    folder: Path
    measures: Sequence[str]
    deleted: str

    def versions(self) -> Iterator[tuple[int, Measures, Mapping[str, Any]]]:
        """Yield each version with its totals and its ``commitInfo``.

        Raises:
            ValueError: An entry does not fit the version before it.
        """
        files: dict[str, _File] = {}
        live: dict[str, tuple[Any, Measures]] = {}
        for number in range(len(list((self.folder / "_delta_log").glob("*.json")))):
            entry = self.folder / "_delta_log" / f"{number:020d}.json"
            lines = entry.read_text(encoding="utf-8").splitlines()
            actions = [action for line in lines for action in json.loads(line).items()]
            info: Mapping[str, Any] = {}
            for kind, action in actions:
                if kind == "commitInfo":
                    info = action
                if kind == "remove":
                    path = unquote(action["path"])
                    was_there = path in live and live[path][0] == action.get("deletionVector")
                    _demand(was_there, f"version {number} removes what is not there")
                    del live[path]
            for kind, action in actions:
                if kind != "add":
                    continue
                path, vector = unquote(action["path"]), action.get("deletionVector")
                _demand(path not in live, f"version {number} adds a file twice")
                if path not in files:
                    files[path] = _File(self.folder / path, self.measures, self.deleted)
                is_right = json.loads(action["stats"])["numRecords"] == files[path].number
                _demand(is_right, f"version {number} counts the rows of a file wrongly")
                live[path] = (vector, files[path].totals(hidden_rows(self.folder, vector)))
            totals: Counter[str] = Counter()
            for _, part in live.values():
                totals.update(part)
            yield number, dict(totals), info


@dataclass(frozen=True)
class LogLake(RustLake):
    """A lake of Delta tables, whose ledger delta-rs reads and whose tables ``TableLog``."""

    def totals_of(
        self, selection: Sequence[Publication], measures: Mapping[str, tuple[str, ...]]
    ) -> Iterator[tuple[Publication, Totals]]:
        """Yield each publication with its totals, in order; see ``totals.Published``."""
        all_totals: dict[tuple[str, int], Measures] = {}
        for table in {table for one in selection for table in one.versions if table in measures}:
            log = TableLog(self.path / f"{self.namespace}.{table}", measures[table], DELETED)
            all_totals |= {(table, number): totals for number, totals, _ in log.versions()}
        for publication in selection:
            there = {(t, v) for t, v in publication.versions.items() if t in measures}
            yield publication, {table: all_totals[table, version] for table, version in there}
