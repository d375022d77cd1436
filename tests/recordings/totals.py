"""Totals of published snapshots, computed by Spark through the reader that users have.

A published version of a table never changes, so its totals are computed once and kept. Nearly all
of a query's time goes into planning it and finding the version's files, on one core; so the tables
that changed over several publications are queried side by side. Rejected: one query over a union of
them, which plans on one core, too (0.43 s a version, measured; side by side 0.15 s).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's users know

from tests.recordings.oracle import Measures, Totals

TOGETHER = 24
"""Table versions that are asked for at a time, so that a violation is told while others wait."""

SIDE_BY_SIDE = 3
"""Queries at a time: one more than CI has cores, since each waits for its Spark job in between."""


class Snapshot(Protocol):
    """One published state of all tables."""

    @property
    def batch(self) -> int:
        """Number of the publication."""

    def tables(self) -> Sequence[str]:
        """Return the collections that have a table."""

    def table(self, collection: str) -> DataFrame:
        """Return the rows of ``collection``."""


class Lake(Protocol):
    """What ``lakeingest.reader.open_lake`` returns, as far as a checker needs it."""

    def history(self) -> DataFrame:
        """Return one row per publication."""

    def snapshots(self) -> Sequence[Snapshot]:
        """Return the state of every publication."""


@dataclass(frozen=True)
class Publication:
    """One row of the history.

    Attributes:
        batch: Number of the publication.
        versions: Version of each table it points to, by bare table name.
        transactions: Source transactions it added.
        paths: Folder of each table that has not its usual one, by bare table name.
    """

    batch: int
    versions: Mapping[str, int]
    transactions: int
    paths: Mapping[str, str] = field(default_factory=dict)


class Published(Protocol):
    """What a checker asks of a lake, whoever reads it."""

    def publications(self) -> Sequence[Publication]:
        """Return all publications, oldest first."""

    def totals_of(
        self, selection: Sequence[Publication], measures: Mapping[str, tuple[str, ...]]
    ) -> Iterator[tuple[Publication, Totals]]:
        """Yield each publication with the totals of its tables in ``measures``, in order."""


@dataclass(frozen=True)
class ReadBySpark:
    """A lake, through the reader that users have; ``rust.RustLake`` reads faster, but only Delta.

    Attributes:
        lake: The reader.
        namespace: Schema or database before the table names.
    """

    lake: Lake
    namespace: str

    def publications(self) -> Sequence[Publication]:
        """See ``Published``."""
        return publications(self.lake)

    def totals_of(
        self, selection: Sequence[Publication], measures: Mapping[str, tuple[str, ...]]
    ) -> Iterator[tuple[Publication, Totals]]:
        """See ``Published``."""
        return TotalsOfLake(self.lake, self.namespace, measures).of(selection)


def publications(lake: Lake) -> list[Publication]:
    """Return all publications, oldest first."""
    rows = lake.history().select("batch", "tables", "transactions").collect()
    entries = [Publication(row["batch"], _versions(row), row["transactions"]) for row in rows]
    return sorted(entries, key=lambda publication: publication.batch)


def _versions(row: Row) -> dict[str, int]:
    return {
        collection.rpartition(".")[2]: version["version"] if isinstance(version, Row) else version
        for collection, version in row["tables"].items()
    }


@dataclass
class TotalsOfLake:
    """Computes and keeps totals per table version.

    Attributes:
        lake: The reader.
        namespace: Schema or database before the table names.
        measures: What to compute, per bare table name.
    """

    lake: Lake
    namespace: str
    measures: Mapping[str, tuple[str, ...]]
    _totals: dict[tuple[str, int], Measures] = field(default_factory=dict)
    _snapshots: Mapping[int, Snapshot] = field(default_factory=dict)

    def of(self, selection: Sequence[Publication]) -> Iterator[tuple[Publication, Totals]]:
        """Yield each publication with the totals of all its tables, in the given order."""
        waiting: dict[tuple[str, int], int] = {}
        queue: list[Publication] = []
        for publication in selection:
            for table, version in publication.versions.items():
                place = (table, version)
                if table in self.measures and place not in self._totals:
                    waiting.setdefault(place, publication.batch)
            queue.append(publication)
            if len(waiting) >= TOGETHER:
                yield from self._release(queue, waiting)
        yield from self._release(queue, waiting)

    def _release(
        self, queue: list[Publication], waiting: dict[tuple[str, int], int]
    ) -> Iterator[tuple[Publication, Totals]]:
        if waiting:
            self._compute(waiting)
        for publication in queue:
            yield (
                publication,
                {
                    table: self._totals[table, version]
                    for table, version in publication.versions.items()
                    if table in self.measures
                },
            )
        queue.clear()
        waiting.clear()

    def _compute(self, places: Mapping[tuple[str, int], int]) -> None:
        if not self._snapshots.keys() >= set(places.values()):
            self._snapshots = {snapshot.batch: snapshot for snapshot in self.lake.snapshots()}

        def totals(place: tuple[str, int]) -> Measures:
            table, _ = place
            rows = self._snapshots[places[place]].table(f"{self.namespace}.{table}")
            row = measured(rows, self.measures[table]).first()
            assert row is not None, "an aggregate without groups has one row"
            values: Measures = row["measures"]
            return values

        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            self._totals.update(zip(places, pool.map(totals, places), strict=True))


def measured(rows: DataFrame, measures: Iterable[str]) -> DataFrame:
    """Return one row with the column ``measures``: a map from measure to its value over ``rows``.

    A measure of a column that ``rows`` do not have yet is left out.
    """
    columns = set(rows.columns)
    present = [m for m in measures if m in {"count", "worth"} or m.partition("_")[2] in columns]
    # One partition before the sums: no shuffle, so a union of many tables is one stage.
    sums = rows.coalesce(1).agg(
        *(F.coalesce(measure(m), F.lit(0)).cast("long").alias(m) for m in present)
    )
    pairs: list[Column] = []
    for m in present:
        pairs += [F.lit(m), F.col(f"`{m}`")]
    return sums.select(F.create_map(*pairs).alias("measures"))


def measure(name: str) -> Column:
    """Return the aggregate for a measure's name, as the oracle defines it.

    Raises:
        ValueError: The oracle has a measure this checker does not know.
    """
    kind, _, column = name.partition("_")
    value = F.col(f"`{column}`")
    if name == "count":
        return F.count(F.lit(1))
    if name == "worth":
        return F.sum(F.col("qty") * F.col("price_cents"))
    if kind == "sum":
        return F.sum(value)
    if kind == "crc":
        # encode() says UTF-8 by name; a cast to binary would lean on how Spark stores strings.
        return F.sum(F.crc32(F.encode(value, "utf-8")))
    if kind == "bool":
        return F.sum(value.cast("int"))
    message = f"unknown measure {name!r} in the oracle"
    raise ValueError(message)
