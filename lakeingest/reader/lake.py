"""Read a lake at a published snapshot: every table at the same source commit.

A snapshot is resolved once, from one ledger row, to a version per table; frames and views are bound
to those versions, so what is read does not move while batches are published. Reading the tables'
heads instead would see one table a batch ahead of another.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from lakeingest.engine import hudi_table
from lakeingest.engine.commit import Commit
from lakeingest.engine.delta_log import commits, is_delta_table
from lakeingest.engine.hudi_streamer import with_positions
from lakeingest.errors import ConfigError, UsageError
from lakeingest.folders import LakeFolders
from lakeingest.shape import LEDGER, LEDGER_FOLDER, MetadataColumns

AsOf = int | str | datetime | None


class Snapshot:
    """The tables as of one publication."""

    def __init__(
        self, spark: SparkSession, folders: LakeFolders, row: Row, names: MetadataColumns
    ) -> None:
        """Bind to a publication's row of the ledger."""
        self._spark = spark
        self._folders = folders
        self._row = row
        self._names = names

    @property
    def batch(self) -> int:
        """Number of the publication."""
        return int(self._row["batch"])

    @property
    def versions(self) -> dict[str, int]:
        """Version of each table."""
        return dict(sorted(self._row["tables"].items()))

    def tables(self) -> list[str]:
        """Names of the tables, sorted."""
        return list(self.versions)

    def key(self, name: str) -> tuple[str, ...]:
        """Return the key columns of a table, from its newest commit."""
        return tuple(self._noted(name, "key") or ())

    def table(self, name: str, metadata: bool = False) -> DataFrame:
        """Return a table's rows as the source had them.

        Args:
            name: Collection, such as ``public.orders``.
            metadata: Give tombstones and the metadata columns, too.

        Raises:
            UsageError: The snapshot has no such table.
        """
        versions = self.versions
        if name not in versions:
            listed = ", ".join(versions) or "none"
            message = f"Batch {self.batch} has no table '{name}'; it has: {listed}."
            raise UsageError(message)
        frame = self._at(name, versions[name])
        if metadata:
            return frame
        live = frame.where(~F.col(self._names.deleted))
        return live.drop(*self._names.names, *self._names.keyless)

    def _at(self, name: str, version: int) -> DataFrame:
        path = self._folders.table(name)
        if not self._is_hudi(name):
            return self._spark.read.format("delta").option("versionAsOf", version).load(path)
        names = self._names
        frame = hudi_table.rows_of(self._spark, path, version, names.names, names.record_key)
        adopted_at = self._noted(name, "adopted_at")
        if not adopted_at:
            return frame
        return with_positions(frame, names.position, names.deleted, adopted_at)

    def _noted(self, name: str, what: str) -> Any:
        """Return what the table's newest commit of ours says of this; null: nothing."""
        for commit in self._commits(name):
            noted = json.loads(commit.metadata) if commit.metadata else None
            if isinstance(noted, dict) and "key" in noted:
                return noted.get(what)
        return None

    def _commits(self, name: str) -> Iterator[Commit]:
        path = self._folders.table(name)
        if self._is_hudi(name):
            return hudi_table.commits(self._spark, path)
        return commits(self._spark, path)

    def _is_hudi(self, name: str) -> bool:
        return hudi_table.is_hudi_table(self._spark, self._folders.table(name))

    def create_views(self, prefix: str = "") -> list[str]:
        """Make a temporary view per table; dots in names become underscores.

        Returns:
            The views' names.
        """
        views = []
        for name in self.versions:
            view = f"{prefix}{name.replace('.', '_')}"
            self.table(name).createOrReplaceTempView(view)
            views.append(view)
        return views


class Lake:
    """A lake folder written by a pipeline."""

    def __init__(self, spark: SparkSession, path: str, metadata_prefix: str = "_") -> None:
        """Open a lake.

        Raises:
            ConfigError: There is no ledger at ``path``.
        """
        self._spark = spark
        self._root = path.rstrip("/")
        self._names = MetadataColumns(metadata_prefix)
        self._ledger = f"{self._root}/{LEDGER_FOLDER}"
        if not is_delta_table(spark, self._ledger):
            message = (
                f"There is no lake at '{path}' (looked for {LEDGER_FOLDER} below it). Run the "
                "pipeline first, or correct lakeingest.target.path."
            )
            raise ConfigError(message)

    def _rows(self, kind: str) -> DataFrame:
        ledger = self._spark.read.format("delta").load(self._ledger)
        for name in ("paths", "schemas"):
            if name not in ledger.columns:  # Made by an older version, which knew none.
                ledger = ledger.withColumn(name, F.lit(None).cast(LEDGER[name].dataType))
        return ledger.where(F.col("kind") == kind)

    def _folders(self, newest: Row | None) -> LakeFolders:
        """Return where the tables lie now, by the newest publication.

        An older one says where they lay: a table that was moved took its versions along.
        """
        paths = newest["paths"] if newest is not None else None
        return LakeFolders(self._root, dict(paths or {}))

    def history(self) -> DataFrame:
        """Return the publications, newest first.

        Columns: ``batch`` (bigint), ``published_at`` (timestamp), ``transactions`` and ``events``
        (bigint), ``tables`` (map collection → version), ``end_offset`` (bigint), ``run`` (string).
        """
        return (
            self._rows("publication")
            .select(
                "batch",
                F.col("at").alias("published_at"),
                "transactions",
                "events",
                "tables",
                "end_offset",
                "run",
            )
            .orderBy(F.col("batch").desc())
        )

    def transactions(self) -> DataFrame:
        """Return the source transactions, newest first.

        Columns: ``batch`` (bigint), ``transaction_id`` (string), ``committed_at`` (timestamp, at
        the source), ``events`` (bigint), ``events_by_table`` (map), ``end_offset`` (bigint).
        """
        return (
            self._rows("transaction")
            .select(
                "batch",
                "transaction_id",
                F.col("at").alias("committed_at"),
                "events",
                "events_by_table",
                "end_offset",
            )
            .orderBy(F.col("end_offset").desc())
        )

    def schemas(self, name: str | None = None) -> DataFrame:
        """Return what the source's tables looked like, newest first: a row where one changed.

        Args:
            name: A collection; null: all.

        Columns: ``batch`` (bigint: the first publication with it), ``published_at`` (timestamp),
        ``collection`` (string), ``columns`` (string: as SQL would declare them, with ``NOT NULL``
        and, in JSON, ``DEFAULT`` where the records tell).
        """
        shown = self._rows("publication").select(
            "batch",
            F.col("at").alias("published_at"),
            F.explode("schemas").alias("collection", "columns"),
        )
        chosen = shown if name is None else shown.where(F.col("collection") == name)
        return chosen.orderBy(F.col("batch").desc(), "collection")

    def snapshot(self, as_of: AsOf = None) -> Snapshot:
        """Fix a snapshot.

        Args:
            as_of: Null: the newest. A number: that batch. A time (``datetime`` or ISO text): the
                newest publication up to then. Other text: the publication of that transaction id.

        Raises:
            UsageError: There is no such publication.
        """
        publications = self._rows("publication")
        if as_of is None:
            chosen = publications
        elif isinstance(as_of, int) or (isinstance(as_of, str) and as_of.isdigit()):
            chosen = publications.where(F.col("batch") == int(as_of))
        elif (moment := _moment(as_of)) is not None:
            chosen = publications.where(F.col("at") <= F.lit(moment))
        else:
            batch = self._rows("transaction").where(F.col("transaction_id") == as_of)
            chosen = publications.join(batch.select("batch").distinct(), "batch")
        order = F.col("batch").desc()
        row = chosen.orderBy(order).select("batch", "tables", "paths").first()
        if row is None:
            known = "nothing is published yet" if as_of is None else f"nothing as of '{as_of}'"
            message = f"No such snapshot: {known}. See `lakeingest history`."
            raise UsageError(message)
        newest = row if as_of is None else publications.orderBy(order).select("paths").first()
        return Snapshot(self._spark, self._folders(newest), row, self._names)

    def snapshots(self) -> list[Snapshot]:
        """Return all publications, oldest first: for audits.

        One look at the ledger brings a summary row per publication to the driver, none of a table.
        """
        found = self._rows("publication").orderBy("batch").select("batch", "tables", "paths")
        rows = found.collect()
        folders = self._folders(rows[-1] if rows else None)
        return [Snapshot(self._spark, folders, row, self._names) for row in rows]

    def tables(self) -> list[str]:
        """Return the tables of the newest snapshot."""
        return self.snapshot().tables()

    def table(self, name: str, metadata: bool = False) -> DataFrame:
        """Return a table of the newest snapshot; see ``Snapshot.table``."""
        return self.snapshot().table(name, metadata)

    def key(self, name: str) -> tuple[str, ...]:
        """Return the key columns of a table."""
        return self.snapshot().key(name)


def _moment(as_of: str | datetime) -> datetime | None:
    if isinstance(as_of, datetime):
        return as_of if as_of.tzinfo else as_of.replace(tzinfo=timezone.utc)
    try:
        parsed = datetime.fromisoformat(as_of.replace("Z", "+00:00"))
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=timezone.utc)


def open_lake(spark: SparkSession, path: str, metadata_prefix: str = "_") -> Lake:
    """Open the lake at ``path``.

    Raises:
        ConfigError: There is none.
    """
    return Lake(spark, path, metadata_prefix)
