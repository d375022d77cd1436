"""Decide which publications stay readable, and remove what the ledger has of older ones.

A reader of the lake as of a time gets the newest publication up to that time. So a publication is
kept while it was the newest one within the retention, however old it is. The newest one is always
kept.

The ledger says which publications are kept (a row of kind ``kept``), before any file is removed:
a reader then gets an error that says so, and not one of a missing file. The row is a plain append,
with which no publication of a run beside it conflicts. Rejected: to remove the publications'
rows. They are the history of the lake and of its schemas, and hold the notes of tables whose own
log has lost them. The rows of transactions are many more; the oldest ones are removed.

A question to the ledger reads its whole history, so what maintenance has to know is one question
(``Retention``), and the tables' versions are another one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lakeingest.cast import typed_columns
from lakeingest.commit_note import maintenance_note
from lakeingest.engine.delta.local_disk import committing
from lakeingest.ledger.compaction import FILES_KEPT, ledger_maintenance, unless_concurrent
from lakeingest.ledger.publication import KEPT, PUBLICATION, TRANSACTION


@dataclass(frozen=True)
class Retention:
    """Which publications are kept, and which transactions.

    Attributes:
        first: First publication that is kept.
        announced: Whether the ledger says that already.
        batch: Newest publication of which nothing is sent again; 0: there is none.
        position: Its ``end_position``; empty: it has none.
    """

    first: int
    announced: bool
    batch: int
    position: str


class LedgerRetention:
    """The retention of one pipeline's ledger, which must have a publication."""

    def __init__(self, spark: SparkSession, path: str, pipeline: str) -> None:
        """Bind to the ledger's folder."""
        self._spark = spark
        self._path = path
        self._pipeline = pipeline

    def since(self, time: datetime, sent: datetime | None) -> Retention:
        """Return what is kept: from the newest publication at ``time`` on; never more than before.

        Args:
            time: Time (UTC) from which on every publication must stay readable.
            sent: Time (UTC) of the oldest transaction that the connector may send again; None: any.
        """
        number = F.col("batch")
        oldest = F.min(F.when(_is(PUBLICATION), number))
        announced = F.max(F.when(_is(KEPT), number))
        first = F.coalesce(F.greatest(F.max(F.when(_older(time), number)), announced), oldest)
        place = F.struct("batch", "end_position")
        applied = F.max(F.when(F.lit(False) if sent is None else _older(sent), place))
        rows = self._rows().agg(first.alias("first"), announced.alias("kept"), applied.alias("at"))
        row = rows.collect()[0]
        batch, position = row["at"] or (0, None)
        return Retention(row["first"], row["kept"] == row["first"], batch, position or "")

    def oldest_versions(self, batch: int) -> dict[str, int]:
        """Return the oldest version of each table in publications from ``batch`` on."""
        publications = self._rows().where(_is(PUBLICATION) & (F.col("batch") >= batch))
        versions = publications.select(F.explode("tables").alias("name", "version"))
        rows = versions.groupBy("name").agg(F.min("version").alias("version")).collect()
        return {row["name"]: int(row["version"]) for row in rows}

    def announce(self, batch: int) -> None:
        """Say that publications from ``batch`` on are kept."""
        values = {
            "kind": F.lit(KEPT),
            "batch": F.lit(batch),
            "token": F.lit(0),
            "run": F.lit(""),
            "at": F.current_timestamp(),
        }
        columns = typed_columns(self._rows().schema, values)
        row = self._spark.sql("VALUES (1)").select(*columns).coalesce(1)
        writer = row.write.format("delta").mode("append")
        writer = writer.option("userMetadata", maintenance_note(self._pipeline))
        with committing(self._spark, self._path):
            writer.save(self._path)

    def expire(self, batch: int, transactions: int) -> None:
        """Remove old rows that nothing needs, and replaced files.

        A publication of a run at the same moment is a conflict. Then the next maintenance does it.

        Args:
            batch: First publication that is kept.
            transactions: First publication whose transactions are kept: the connector may send
                them again, and a run must know that they were applied.
        """
        old_transaction = _is(TRANSACTION) & (F.col("batch") < min(batch, transactions))
        maintenance = ledger_maintenance(self._spark, self._path, self._pipeline)
        with unless_concurrent():
            maintenance.delete(old_transaction | (_is(KEPT) & (F.col("batch") < batch)))
        with unless_concurrent():
            maintenance.join_small_files()
        maintenance.vacuum(FILES_KEPT)

    def _rows(self) -> DataFrame:
        return self._spark.read.format("delta").load(self._path)


def _older(time: datetime) -> Column:
    return _is(PUBLICATION) & (F.col("at") <= F.lit(time))


def _is(*kinds: str) -> Column:
    return F.col("kind").isin(*kinds)
