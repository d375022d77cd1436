"""Published snapshots, read by other engines: delta-rs and hudi-rs, without Spark.

A reader that looks all the while beside a run on two cores must cost little: ten small tables take
Spark 2 to 3 processor seconds a look, delta-rs 0.2 (measured). It also shows that what we publish
is Delta, or Hudi, to others, too. Afterwards, a history of 13 publications takes Spark 25 s and
delta-rs 0.9 s: what judges the writing is read by delta-rs, what judges our reader by that
(``recordings/test_recordings.py`` and the command ``tests.recordings.check``).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import TableNotFoundError
from hudi import HudiReadOptions, HudiTableBuilder

from lakeingest.folders import LEDGER_FOLDER
from lakeingest.frame_schemas import MetadataColumns
from tests.recordings.oracle import Measures, Totals
from tests.recordings.totals import Publication

DELETED = MetadataColumns("_").deleted

_PUBLICATIONS = """
    SELECT batch, tables, transactions, paths FROM t
    WHERE kind = 'publication' ORDER BY batch
"""
_NEWEST = f"{_PUBLICATIONS} DESC LIMIT 1"

UNREAD_BY_HUDI_RS = "TIMESTAMP_NTZ"
"""Type of a column that no table may have (0.5.0 panics, whatever columns are asked for)."""

Column = Sequence[Any]


@dataclass(frozen=True)
class RustLake:
    """A lake, as delta-rs and hudi-rs see it.

    Attributes:
        path: Its folder.
        namespace: Schema or database before the table names.
        left_out: Tables that are not read: those of Hudi with a type that hudi-rs does not know.
    """

    path: Path
    namespace: str
    left_out: frozenset[str] = frozenset()

    def newest(self) -> Publication | None:
        """Return the newest publication; null where there is none."""
        publications = self._listed(_NEWEST)
        return publications[0] if publications else None

    def publications(self) -> Sequence[Publication]:
        """Return all publications, oldest first; none where there is no ledger."""
        return self._listed(_PUBLICATIONS)

    def totals_of(
        self, selection: Sequence[Publication], measures: Mapping[str, tuple[str, ...]]
    ) -> Iterator[tuple[Publication, Totals]]:
        """Yield each publication with its totals, in order; a version is read once.

        Raises:
            ValueError: A table of them is not Delta's.
        """
        totals: dict[tuple[Path, int], Measures] = {}
        for publication in selection:
            there = {
                table: (self._folder(publication, table), version)
                for table, version in publication.versions.items()
                if table in measures
            }
            for table, (folder, version) in there.items():
                if (folder, version) in totals:
                    continue
                if _is_hudi(folder):
                    message = f"{table} is a Hudi table: let Spark read it (ReadBySpark)"
                    raise ValueError(message)
                totals[folder, version] = _measured(folder, version, measures[table])
            yield publication, {table: totals[place] for table, place in there.items()}

    def _listed(self, query: str) -> list[Publication]:
        try:
            ledger = DeltaTable(str(self.path / LEDGER_FOLDER))
        except TableNotFoundError:
            return []
        rows = queried(ledger, query)
        return [
            Publication(batch, _by_bare_name(tables), transactions, _by_bare_name(paths or ()))
            for batch, tables, transactions, paths in zip(
                *(rows[name] for name in ("batch", "tables", "transactions", "paths")), strict=True
            )
        ]

    def totals(self, publication: Publication, measures: Mapping[str, Iterable[str]]) -> Totals:
        """Return the totals of the tables in ``measures`` as ``publication`` shows them."""
        return {
            table: _measured(self._folder(publication, table), version, measures[table])
            for table, version in publication.versions.items()
            if table in measures and table not in self.left_out
        }

    def _folder(self, publication: Publication, table: str) -> Path:
        """Return the folder of a table, which is another one after the table was loaded anew."""
        return self.path / publication.paths.get(table, f"{self.namespace}.{table}")


_Value = TypeVar("_Value")


def _by_bare_name(pairs: Iterable[tuple[str, _Value]]) -> dict[str, _Value]:
    return {name.rpartition(".")[2]: value for name, value in pairs}


def _measured(folder: Path, version: int, measures: Iterable[str]) -> Measures:
    read = _hudi_rows if _is_hudi(folder) else _delta_rows
    names, rows = read(folder, version, measures)
    return {name: measure_of(name, rows) for name in names}


def _is_hudi(folder: Path) -> bool:
    return (folder / ".hoodie").is_dir()


def _delta_rows(
    path: Path, version: int, measures: Iterable[str]
) -> tuple[list[str], Mapping[str, Column]]:
    """Return those of the measures whose columns are there, and the rows to measure."""
    at = DeltaTable(str(path), version=version)
    names, columns = _selection(measures, {field.name for field in at.schema().fields})
    listed = ", ".join(f'"{column}"' for column in columns)
    return names, queried(at, f'SELECT {listed} FROM t WHERE NOT "{DELETED}"')  # noqa: S608


def _hudi_rows(
    path: Path, version: int, measures: Iterable[str]
) -> tuple[list[str], Mapping[str, Column]]:
    """Return what ``_delta_rows`` does; without a filter, which hudi-rs takes for a hint."""
    at = HudiTableBuilder.from_base_uri(str(path)).build()
    names, columns = _selection(measures, set(at.get_schema().names))
    options = HudiReadOptions(projection=columns).with_as_of_timestamp(str(version))
    rows = [row for batch in at.read(options) for row in batch.to_pylist()]
    shown = [row for row in rows if not row[DELETED]]
    return names, {column: [row[column] for row in shown] for column in columns}


def _selection(measures: Iterable[str], present: set[str]) -> tuple[list[str], list[str]]:
    names = [name for name in measures if columns_of(name) <= present]
    # The flag stands for the rows where only their number is asked for.
    return names, [*sorted({column for name in names for column in columns_of(name)}), DELETED]


def queried(table: DeltaTable, query: str) -> Mapping[str, Column]:
    """Return the columns of a query over a table, which the query calls ``t``."""
    rows = QueryBuilder().register("t", table).execute(query).read_all()
    return {name: list(rows.column(name).to_pylist()) for name in rows.schema.names}


def columns_of(measure: str) -> set[str]:
    """Return the columns that a measure of the oracle reads."""
    if measure == "count":
        return set()
    return {"qty", "price_cents"} if measure == "worth" else {measure.partition("_")[2]}


def measure_of(name: str, rows: Mapping[str, Column]) -> int:
    """Return a measure as the oracle defines it.

    Raises:
        ValueError: The oracle has a measure that this reader does not know.
    """
    if name == "count":
        return len(rows[DELETED])
    if name == "worth":
        return sum(qty * cents for qty, cents in zip(rows["qty"], rows["price_cents"], strict=True))
    kind, _, column = name.partition("_")
    if kind not in _OF_VALUE:
        message = f"unknown measure {name!r} in the oracle"
        raise ValueError(message)
    return sum(_OF_VALUE[kind](value) for value in rows[column] if value is not None)


_OF_VALUE: Mapping[str, Callable[[Any], int]] = {
    "sum": int,
    "bool": int,
    "crc": lambda text: zlib.crc32(text.encode("utf-8")),
}
