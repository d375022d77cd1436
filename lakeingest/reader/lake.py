"""Find the publications of a lake: the newest one, those of a time, and those of a transaction."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from lakeingest.engine.delta.files import highest_rows
from lakeingest.engine.delta.log import is_delta_table
from lakeingest.engine.storage_errors import storage
from lakeingest.errors import ConfigError, UsageError
from lakeingest.folders import LEDGER_FOLDER, LakeFolders, folder_name, load_of
from lakeingest.frame_schemas import LEDGER, MetadataColumns
from lakeingest.reader.as_of import TRANSACTION, AsOf, SourceTransaction, parse_as_of
from lakeingest.reader.diff import Diff
from lakeingest.reader.snapshot import Snapshot

_SHOWN = ("batch", "transactions", "tables", "paths")
"""Columns of a publication that a snapshot needs."""


class Lake:
    """A lake folder written by a pipeline."""

    def __init__(self, spark: SparkSession, path: str, metadata_prefix: str = "_") -> None:
        """Open a lake.

        Raises:
            ConfigError: There is no ledger at ``path``, or no file system for it in Spark.
            AccessError, UnavailableError: The storage refuses access or is unavailable.
        """
        self._spark = spark
        self._root = path.rstrip("/")
        self._names = MetadataColumns(metadata_prefix)
        self._ledger = LakeFolders(self._root).ledger
        with storage(self._root):
            exists = is_delta_table(spark, self._ledger)
        if not exists:
            message = (
                f"There is no lake at '{path}' (looked for {LEDGER_FOLDER} below it). Run the "
                "pipeline first, or correct lakeingest.target.path."
            )
            raise ConfigError(message)

    def __repr__(self) -> str:
        """Return what a notebook shows of it."""
        return f"<Lake: {self._root}>"

    def _all_rows(self) -> DataFrame:
        return _completed(self._spark.read.format("delta").load(self._ledger))

    def _rows(self, kind: str) -> DataFrame:
        return self._all_rows().where(F.col("kind") == kind)

    def _snapshot(self, row: Row, newest: Mapping[tuple[str, int], str]) -> Snapshot:
        """Return the snapshot of a publication, whose tables may have been moved since.

        An older publication names the folder of its time. A table that was moved took its versions
        along, so the newest publication that names a folder of the same load counts. A publication
        without a folder means the folder of the table's name, whatever is in it.

        Args:
            row: The publication.
            newest: The result of ``_newest_paths``.
        """
        paths = {name: newest[name, load_of(path)] for name, path in _paths(row).items()}
        named = {name: path for name, path in paths.items() if folder_name(name) != path}
        return Snapshot(self._spark, LakeFolders(self._root, named), row, self._names)

    def _paths_since(self, row: Row, newest: Row | None) -> dict[tuple[str, int], str]:
        """Return the result of ``_newest_paths`` for the tables of one publication.

        The newest publication hardly ever lacks one: then the table was loaded anew or retired, and
        may have been moved before that.

        Args:
            row: The publication.
            newest: The newest one.
        """
        paths = _newest_paths([newest] if newest else [])
        own = _newest_paths([row])
        names = [name for name, load in own if (name, load) not in paths]
        if not names:
            return own | paths
        name = F.col("name")
        folders = (
            self._rows("publication")
            .where(F.col("batch") > row["batch"])
            .withColumn("name", F.explode(F.array(*map(F.lit, names))))
            .where(F.col("tables")[name].isNotNull())
            .groupBy("name", F.coalesce(F.col("paths")[name], name).alias("path"))
            .agg(F.max("batch").alias("batch"))
            .orderBy("batch")
        )
        later = {(name, load_of(path)): path for name, path, _ in folders.collect()}
        return own | later | paths

    def history(self) -> DataFrame:
        """Return the publications, newest first, also those that are no longer kept.

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
        """Return the source transactions, newest first; maintenance may remove the oldest.

        Columns: ``batch`` (bigint), ``transaction_id`` (string), ``committed_at`` (timestamp, at
        the source), ``events`` (bigint), ``events_by_table`` (map), ``end_offset`` (bigint),
        ``missing_by_table`` (map: rows that were missing when it was published in part, where they
        are counted; NULL: it was published whole).
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
                "missing_by_table",
            )
            .orderBy(F.col("end_offset").desc())
        )

    def schemas(self, name: str | None = None) -> DataFrame:
        """Return the schemas of the source's tables, newest first: one row per change of a table.

        Args:
            name: A collection; None: all.

        Columns: ``batch`` (bigint: the first publication with the schema), ``published_at``
        (timestamp), ``collection`` (string), ``columns`` (string: as SQL would declare them, with
        ``NOT NULL`` and, in JSON, ``DEFAULT`` where the records have them).
        """
        schemas = self._rows("publication").select(
            "batch",
            F.col("at").alias("published_at"),
            F.explode("schemas").alias("collection", "columns"),
        )
        selection = schemas if name is None else schemas.where(F.col("collection") == name)
        return selection.orderBy(F.col("batch").desc(), "collection")

    def snapshot(self, as_of: AsOf = None) -> Snapshot:
        """Return a snapshot of one publication.

        Args:
            as_of: None: the newest publication. A number: that batch. A ``datetime``, or text that
                begins with an ISO date: the newest publication up to that time, in UTC unless it
                names a zone. Other text: the publication that holds the source transaction of that
                id. Put ``tx:`` before an id that looks like a time. PostgreSQL's id is ``xid:lsn``;
                the xid alone is enough, and if several transactions had it, the newest counts.

        Raises:
            AccessError, UnavailableError: The lake's storage refuses access or is unavailable.
            UsageError: There is no such publication, or it is no longer kept.
        """
        target = None if as_of is None else parse_as_of(as_of)
        with storage(self._root):
            newest = self._newest()
            row, kept_from = (newest, 0) if target is None else self._matching(target)
            if row is None:
                raise UsageError(_no_publication(target))
            if row["batch"] < kept_from:
                raise UsageError(_not_kept(row["batch"], kept_from))
            paths = self._paths_since(row, newest)
        return self._snapshot(row, paths)

    def diff(self, transaction: int | str) -> Diff:
        """Return what a source transaction changed, row by row.

        Args:
            transaction: Id of the transaction; see ``snapshot``. Rows that an incremental snapshot
                sent since the transaction before it count as its own. A number: all that the
                publication changed.

        Raises:
            AccessError, UnavailableError: The lake's storage refuses access or is unavailable.
            UsageError: There is no such publication, the one before it is no longer kept, or it
                holds other transactions, too.
        """
        target = parse_as_of(transaction)
        if isinstance(target, datetime):
            message = f"A time names no transaction; if it is an id, write tx:{transaction}"
            raise UsageError(message)
        after = self.snapshot(transaction)
        if isinstance(target, SourceTransaction) and after.transactions > 1:
            raise UsageError(_not_alone(target.id, after.batch, after.transactions))
        with storage(self._root):
            before = self._rows("publication").where(F.col("batch") < after.batch)
            last = before.agg(
                F.max("batch").alias("batch"), F.max_by("end_position", "batch").alias("above")
            ).first()
        if last is None or last["batch"] is None:
            return Diff(None, after, "", self._names)
        earlier = self.snapshot(int(last["batch"]))
        above = last["above"] if isinstance(target, SourceTransaction) else ""
        return Diff(earlier, after, above or "", self._names)

    def _newest(self) -> Row | None:
        """Return the newest publication; read only the files that hold it.

        Its number is the highest of all rows, which the statistics of the ledger's files show.
        """
        highest = highest_rows(self._spark, self._ledger, "batch")
        if highest is None:
            publications = self._rows("publication").orderBy(F.col("batch").desc())
        else:
            number, rows = highest
            is_newest = (F.col("kind") == "publication") & (F.col("batch") == number)
            publications = _completed(rows).where(is_newest)
        return publications.select(*_SHOWN).first()

    def _matching(self, target: int | datetime | SourceTransaction) -> tuple[Row | None, int]:
        """Return the newest publication that matches, and the number of the first one that is kept.

        Returns:
            The publication, or None if none matches; and the number, 0 if all are kept.
        """
        batch, kind = F.col("batch"), F.col("kind")
        if isinstance(target, datetime):
            is_match = F.col("at") <= F.lit(target)
        else:
            is_match = batch == F.lit(target if isinstance(target, int) else self._batch_of(target))
        is_kept = kind == "kept"
        rows = self._all_rows().where(((kind == "publication") & is_match) | is_kept)
        newest = F.max_by(F.struct(*_SHOWN), F.when(~is_kept, batch))
        row = rows.agg(newest, F.max(F.when(is_kept, batch))).first()
        return (row[0], int(row[1] or 0)) if row else (None, 0)

    def _batch_of(self, transaction: SourceTransaction) -> int | None:
        """Return the newest publication that holds a source transaction; None: there is none."""
        matches = self._rows("transaction").where(_is_transaction(transaction.id))
        row = matches.agg(F.max("batch")).first()
        return row[0] if row else None

    def _kept_from(self) -> int:
        """Return the number of the first publication that maintenance keeps; 0: all are kept."""
        row = self._rows("kept").agg(F.max("batch")).first()
        return int(row[0] or 0) if row else 0

    def snapshots(self) -> list[Snapshot]:
        """Return all publications that are kept, oldest first, for audits.

        One read of the ledger brings a summary row per publication to the driver, and no row of a
        table.
        """
        publications = self._rows("publication").where(F.col("batch") >= self._kept_from())
        rows = publications.orderBy("batch").select(*_SHOWN).collect()
        paths = _newest_paths(rows)
        return [self._snapshot(row, paths) for row in rows]

    def tables(self) -> list[str]:
        """Return the tables of the newest snapshot."""
        return self.snapshot().tables()

    def table(self, name: str, metadata: bool = False) -> DataFrame:
        """Return a table of the newest snapshot; see ``Snapshot.table``."""
        return self.snapshot().table(name, metadata)

    def key(self, name: str) -> tuple[str, ...]:
        """Return the key columns of a table."""
        return self.snapshot().key(name)


def _completed(ledger: DataFrame) -> DataFrame:
    """Return the ledger's rows with the columns that it lacks if an older version made it."""
    added = ("paths", "schemas", "missing_by_table")
    missing = [name for name in added if name not in ledger.columns]
    nothing = {name: F.lit(None).cast(LEDGER[name].dataType) for name in missing}
    # Spark Connect refuses to add no columns.
    return ledger.withColumns(nothing) if missing else ledger


def _paths(publication: Row) -> dict[str, str]:
    """Return the folder of each table of a publication, as the publication names it."""
    return {name: name for name in publication["tables"]} | (publication["paths"] or {})


def _newest_paths(publications: Iterable[Row]) -> dict[tuple[str, int], str]:
    """Return the newest folder of each table's load, by table and number of the load.

    Args:
        publications: Their rows, oldest first.
    """
    return {
        (name, load_of(path)): path
        for publication in publications
        for name, path in _paths(publication).items()
    }


def _is_transaction(id_: str) -> Column:
    """Return a condition over the ledger's transactions: this id, or an id with this xid."""
    transaction_id = F.col("transaction_id")
    if re.fullmatch("[0-9]+", id_) is None:
        return transaction_id == id_
    return (transaction_id == id_) | transaction_id.rlike(f"^{id_}:[0-9]+$")


def _no_publication(target: int | datetime | SourceTransaction | None) -> str:
    listing = "lake.history() (`lakeingest history`) lists the publications"
    if target is None:
        return "Nothing is published yet: run the pipeline first."
    if isinstance(target, int):
        return (
            f"There is no publication {target}; {listing}. A source transaction is asked for by "
            f"{TRANSACTION}{target}."
        )
    if isinstance(target, datetime):
        return f"Nothing was published up to {target.isoformat()}; {listing}."
    return (
        f"No publication holds a source transaction '{target.id}'; lake.transactions() lists those "
        "there are (maintenance removes the oldest, lakeingest.tombstone.retention.hours)."
        f"{_hint(target.id)}"
    )


def _not_kept(batch: int, first: int) -> str:
    return (
        f"Publication {batch} is older than the lake's retention: maintenance keeps what was "
        f"published from {first} on (lakeingest.ledger.retention.hours). Ask for a later one."
    )


def _not_alone(id_: str, batch: int, transactions: int) -> str:
    return (
        f"Publication {batch} holds {transactions} source transactions, so the lake does not tell "
        f"what '{id_}' changed. lake.diff({batch}) shows what all of them did; with "
        "lakeingest.commit.mode=per-transaction each has a publication of its own."
    )


def _hint(id_: str) -> str:
    if re.fullmatch("[0-9]+", id_):
        return f" A batch is asked for by a number: as_of={id_}."
    if re.fullmatch("[0-9]+:[0-9]+", id_):
        xid = id_.partition(":")[0]
        return f" Each record of a transaction has another LSN: ask for the xid alone, 'tx:{xid}'."
    return ""


def open_lake(spark: SparkSession, path: str, metadata_prefix: str = "_") -> Lake:
    """Open the lake at ``path``.

    Raises:
        ConfigError: There is no lake.
    """
    return Lake(spark, path, metadata_prefix)
