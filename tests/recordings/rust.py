"""Published snapshots, read by another engine: delta-rs, without Spark.

A reader that looks all the while beside a run on two cores must cost little: ten small tables take
Spark 2 to 3 processor seconds a look, delta-rs 0.2 (measured). It also shows that what we publish
is Delta to others, too. Every publication is read by Spark afterwards (``tests.recordings.check``).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import TableNotFoundError

from lakeingest.shape import LEDGER_FOLDER, MetadataColumns
from tests.recordings.oracle import Measures, Totals
from tests.recordings.totals import Publication

_DELETED = MetadataColumns("_").deleted

_NEWEST = """
    SELECT batch, tables, transactions FROM ledger
    WHERE kind = 'publication' ORDER BY batch DESC LIMIT 1
"""

Column = Sequence[Any]


@dataclass(frozen=True)
class DeltaRsLake:
    """A lake, as delta-rs sees it.

    Attributes:
        path: Its folder.
        namespace: Schema or database before the table names.
    """

    path: Path
    namespace: str

    def newest(self) -> Publication | None:
        """Return the newest publication; null where there is none."""
        try:
            ledger = DeltaTable(str(self.path / LEDGER_FOLDER))
        except TableNotFoundError:
            return None
        found = _queried("ledger", ledger, _NEWEST)
        if not found["batch"]:
            return None
        versions = {name.rpartition(".")[2]: at for name, at in found["tables"][0]}
        return Publication(found["batch"][0], versions, found["transactions"][0])

    def totals(self, publication: Publication, measures: Mapping[str, Iterable[str]]) -> Totals:
        """Return the totals of the tables in ``measures`` as ``publication`` shows them."""
        return {
            table: self._measured(table, version, measures[table])
            for table, version in publication.versions.items()
            if table in measures
        }

    def _measured(self, table: str, version: int, measures: Iterable[str]) -> Measures:
        at = DeltaTable(str(self.path / f"{self.namespace}.{table}"), version=version)
        present = {field.name for field in at.schema().fields}
        wanted = [name for name in measures if _columns(name) <= present]
        columns = sorted({column for name in wanted for column in _columns(name)})
        # The flag stands for the rows where only their number is asked for.
        listed = ", ".join(f'"{column}"' for column in [*columns, _DELETED])
        rows = _queried("t", at, f'SELECT {listed} FROM t WHERE NOT "{_DELETED}"')  # noqa: S608
        return {name: _measure(name, rows) for name in wanted}


def _queried(name: str, table: DeltaTable, query: str) -> Mapping[str, Column]:
    found = QueryBuilder().register(name, table).execute(query).read_all()
    return {column: found.column(column).to_pylist() for column in found.schema.names}


def _columns(measure: str) -> set[str]:
    """Return the columns that a measure of the oracle reads."""
    if measure == "count":
        return set()
    return {"qty", "price_cents"} if measure == "worth" else {measure.partition("_")[2]}


def _measure(name: str, rows: Mapping[str, Column]) -> int:
    """Return a measure as the oracle defines it.

    Raises:
        ValueError: The oracle has a measure that this reader does not know.
    """
    if name == "count":
        return len(rows[_DELETED])
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
