"""The ledger as a Delta table beside the tables it speaks of.

One append is one publication: a row for the batch and one for each source transaction, in one
commit. The same publication travels as JSON in that commit's metadata, so the head is read from
the newest log entries and costs the same after a million batches; the rows are for readers and SQL.

A run claims the ledger before it writes anything: an append with a writer number above all before.
Publications and claims share one ``txnAppId`` with ascending tokens, so an older driver's next
append is skipped or refused by Delta, is seen to be so, and ends that driver (P7). The rejected
way is a lease with a clock: a stopped and revived process does not know that its lease is over.

A driver that ends properly releases the ledger. Nothing of its own is under way then, so the next
driver neither reads nor fences tables that it does not write: a run costs what it changes, however
many tables are idle. The last driver before the release had fenced those before it. Claims and
releases are commits without a row or a file.

A claim does not say how far the lake is: it repeats what its driver had read, and another driver
may have published since. The head is therefore looked for below the newest claims, but for one that
follows directly what its driver had read: runs that fail one after another leave a claim each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lakeingest.engine.delta_log import TABLE_PROPERTIES, commits, is_delta_table
from lakeingest.engine.delta_transaction import DeltaTransaction, available
from lakeingest.errors import ConfigError, FencedError, TransientError
from lakeingest.frame_schemas import LEDGER
from lakeingest.ledger.compaction import PROPERTIES, compact
from lakeingest.ledger.publication import (
    CLAIM,
    EPOCH,
    PUBLICATION,
    RELEASE,
    Entry,
    Frontier,
    Publication,
)
from lakeingest.position import after
from lakeingest.position.epochs import Epoch

_APP = "lakeingest-ledger:"
_TOKEN_BATCHES = 1_000_000_000
_ABOVE = "~"
"""Sorts above all that positions are made of."""


class DeltaLedger:
    """Publications of one pipeline."""

    def __init__(
        self,
        spark: SparkSession,
        path: str,
        pipeline: str,
        run: str,
        *,
        direct: bool = True,
        transaction_topic: str = "",
    ) -> None:
        """Bind to the ledger's folder.

        Args:
            spark: Session with Delta's extension.
            path: Folder of the ledger table.
            pipeline: Name of the pipeline.
            run: Identifier of this run.
            direct: Whether an append may go through a transaction of our own.
            transaction_topic: Where the offsets of END are from.
        """
        self._spark = spark
        self._direct = direct and available(spark)
        self._path = path
        self._pipeline = pipeline
        self._run = run
        self._transaction_topic = transaction_topic

    def head(self) -> Publication:
        """Return the newest publication (batch 0 before the first one).

        Its ``writer`` is the newest claim's.

        Raises:
            ConfigError: The ledger belongs to another pipeline.
        """
        if not is_delta_table(self._spark, self._path):
            return Publication()
        newest: Entry | None = None
        for entry in self._entries():
            newest = newest or entry
            if entry.certain:
                return _as_of(entry.publication, newest)
        if newest is not None:
            # Nothing was published yet, or so long ago that the log does not reach back to it.
            return _as_of(newest.publication, newest)
        message = (
            "The folder _lakeingest/ledger under lakeingest.target.path holds a table that "
            "lakeingest did not write. It was not touched; choose another lakeingest.target.path."
        )
        raise ConfigError(message)

    def _must_be_ours(self, pipeline: str) -> None:
        if pipeline != self._pipeline:
            message = (
                f"lakeingest.target.path holds the lake of pipeline '{pipeline}', not of "
                f"'{self._pipeline}'. Two pipelines cannot share one; choose another path or "
                "name the pipeline as before (lakeingest.pipeline.name)."
            )
            raise ConfigError(message)

    def claim(self, head: Publication) -> Publication:
        """Shut out every earlier driver; returns the head, with this run as its writer.

        What a driver published between the reading of ``head`` and the claim is in what is
        returned; afterwards none can publish any more. ``released`` tells of the drivers before.

        Raises:
            FencedError: Another driver claimed at the same moment.
        """
        writer = head.writer + 1
        token = writer * _TOKEN_BATCHES
        claimed = replace(head, writer=writer, run=self._run, token=token, schemas={})
        self._append(None, claimed, CLAIM)
        entries = self._entries()
        own = next(entries, None)
        if own is None or own.publication.run != self._run:
            raise self._fenced()
        below = next(entries, None)
        if below is None or not below.publication.released:
            return self.head()
        return replace(_as_of(below.publication, own), released=True)

    def release(self, head: Publication) -> None:
        """Hand the lake over: from now on this run writes nothing, unless it claims again.

        Does nothing where another driver has claimed the ledger: that one looks at every table. Nor
        before the first publication, where a claim may say where an adopted lake begins.

        Args:
            head: The newest publication; every table commit of this run is in it.
        """
        newest = self._newest()
        if newest is None or (newest.run, newest.batch) != (self._run, head.batch or None):
            return
        token = (head.writer + 1) * _TOKEN_BATCHES - 1
        released = replace(head, run=self._run, token=token, opened=(), schemas={})
        with suppress(FencedError):
            self._append(None, released, RELEASE)

    def _entries(self) -> Iterator[Entry]:
        """Yield the entries, newest first; each is read when it is asked for."""
        for commit in commits(self._spark, self._path):
            entry = Entry.from_json(commit.metadata, commit.version)
            if entry is not None:
                self._must_be_ours(entry.pipeline)
                yield entry

    def _newest(self) -> Publication | None:
        """Return what the newest entry says, whatever its kind."""
        return next((entry.publication for entry in self._entries()), None)

    def publish(self, publication: Publication, transactions: DataFrame) -> None:
        """Make a batch visible: one append, one commit.

        Args:
            publication: What becomes visible.
            transactions: ``id``, ``end_offset``, ``end_position``, ``committed_at``, ``events``,
                ``collections``: the batch's source transactions.

        Raises:
            FencedError: Another driver has claimed the ledger.
        """
        # PostgreSQL counts logical messages under names like "…MessageId@50a5e486".
        named = F.filter("collections", lambda c: ~F.contains(c["data_collection"], F.lit("@")))
        rows = transactions.select(
            F.lit("transaction").alias("kind"),
            F.lit(publication.batch).cast("bigint").alias("batch"),
            F.lit(publication.token).cast("bigint").alias("token"),
            F.lit(publication.run).alias("run"),
            F.coalesce(F.col("committed_at"), F.timestamp_seconds(F.lit(0))).alias("at"),
            F.lit(1).cast("bigint").alias("transactions"),
            F.col("event_count").alias("events"),
            F.lit(None).cast(LEDGER["tables"].dataType).alias("tables"),
            F.col("end_offset"),
            F.col("end_position"),
            F.lit(None).cast(LEDGER["offsets"].dataType).alias("offsets"),
            F.col("id").alias("transaction_id"),
            F.map_from_entries(named).alias("events_by_table"),
            F.lit(None).cast(LEDGER["paths"].dataType).alias("paths"),
            F.lit(None).cast(LEDGER["schemas"].dataType).alias("schemas"),
            F.lit(None).cast(LEDGER["notes"].dataType).alias("notes"),
        )
        head = self._published_rows(publication)
        self._append(head.unionByName(rows).coalesce(1), publication, PUBLICATION)
        compact(self._spark, self._path, publication.batch)

    def publish_alone(self, publication: Publication) -> None:
        """Publish what changes no table: an epoch begins, or the log was read farther.

        Raises:
            FencedError: Another driver has claimed the ledger.
        """
        rows = self._published_rows(replace(publication, notes={})).coalesce(1)
        self._append(rows, publication, PUBLICATION)

    def _published_rows(self, publication: Publication) -> DataFrame:
        rows = self._row(PUBLICATION, publication)
        for epoch in publication.opened:
            rows = rows.unionByName(self._epoch_row(publication, epoch))
        return rows

    def unknown_ends(self, positions: Sequence[str]) -> int:
        """Count the END positions that no published transaction has.

        Args:
            positions: Positions, or what they begin with; all of one length.
        """
        if not positions:
            return 0
        place = F.col("end_position")
        begins = F.substring(place, 1, len(positions[0])).alias("begins")
        # By the range, too: each file's statistics tell whether it has any of them.
        within = place.between(min(positions), max(positions) + _ABOVE)
        known = (
            self._spark.read.format("delta")
            .load(self._path)
            .where((F.col("kind") == "transaction") & within & begins.isin(*positions))
        )
        return len(set(positions)) - known.select(begins).distinct().count()

    def notes(self, collection: str) -> tuple[str, ...]:
        """Return the notes of a table that are of use: the newest, and the newest with a schema.

        Reads the whole ledger; for when the table's own log does not reach back to them.
        """
        if not is_delta_table(self._spark, self._path):
            return ()
        ledger = self._spark.read.format("delta").load(self._path)
        if "notes" not in ledger.columns:
            return ()
        note = F.col("notes")[collection]
        schema = F.get_json_object(note, "$.schema")
        found = ledger.where((F.col("kind") == PUBLICATION) & note.isNotNull()).agg(
            F.max_by(note, "batch").alias("newest"),
            F.max_by(note, F.when(schema != "", F.col("batch"))).alias("schema"),
        )
        row = found.first()
        return tuple(text for text in row or () if text)

    def _epoch_row(self, publication: Publication, epoch: Epoch) -> DataFrame:
        """Return what says where an epoch begins: its topic, partition, offset and position."""
        data = {} if epoch.domain else publication.frontier.offsets
        offsets = {**data, self._transaction_topic: {0: epoch.end_offset}}
        begun = Frontier(epoch.end_offset, after(epoch.number), offsets)
        alone = replace(
            publication, tables={}, paths={}, notes={}, transactions=0, events=0, frontier=begun
        )
        return self._row(EPOCH, alone).withColumn("transaction_id", F.lit(epoch.domain))

    def _row(self, kind: str, publication: Publication) -> DataFrame:
        frontier = publication.frontier

        def parsed(value: object, column: str) -> Column:
            kind_of = LEDGER[column].dataType.simpleString()
            return F.from_json(F.lit(json.dumps(value)), kind_of).alias(column)

        columns = [
            F.lit(kind).alias("kind"),
            F.lit(publication.batch).cast("bigint").alias("batch"),
            F.lit(publication.token).cast("bigint").alias("token"),
            F.lit(publication.run).alias("run"),
            F.current_timestamp().alias("at"),
            F.lit(publication.transactions).cast("bigint").alias("transactions"),
            F.lit(publication.events).cast("bigint").alias("events"),
            parsed(dict(publication.tables), "tables"),
            F.lit(frontier.end_offset).cast("bigint").alias("end_offset"),
            F.lit(frontier.end_position).alias("end_position"),
            parsed({t: dict(p) for t, p in frontier.offsets.items()}, "offsets"),
            F.lit(None).cast("string").alias("transaction_id"),
            F.lit(None).cast(LEDGER["events_by_table"].dataType).alias("events_by_table"),
            parsed(dict(publication.paths) or None, "paths"),
            parsed(dict(publication.schemas) or None, "schemas"),
            parsed(dict(publication.notes) or None, "notes"),
        ]
        # A row of literals over a local row stays one; over ``range`` each publication would be new
        # code, compiled for one row.
        return self._spark.sql("VALUES (1)").select(*columns)

    def _append(self, rows: DataFrame | None, publication: Publication, kind: str) -> None:
        """Commit an entry, with rows or without.

        Raises:
            FencedError: Another driver has claimed the ledger.
        """
        ordered = None if rows is None else rows.select(*LEDGER.fieldNames())
        metadata = publication.to_json(self._pipeline, kind)
        try:
            if self._append_directly(ordered, publication.token, metadata):
                return
            self._append_publicly(ordered, publication.token, metadata)
        except Exception as error:
            if "Concurrent" in f"{type(error).__name__} {error}":
                raise self._conflict(publication.token) from error
            raise
        # Delta skips a token that is not above all before it, and says nothing.
        # Not ``head()``: that would list the log once more, to see that the table is there.
        newest = self._newest()
        if newest is None or (newest.run, newest.token) != (self._run, publication.token):
            raise self._fenced()

    def _append_directly(self, rows: DataFrame | None, token: int, metadata: str) -> bool:
        """Append in a transaction of our own; false where that cannot be done."""
        if not self._direct:
            return False
        # An append needs no row that is there, so files that are joined beside it do not matter.
        transaction = DeltaTransaction(self._spark, self._path, self._application(), rows=False)
        if not transaction.plain or transaction.schema.fieldNames() != LEDGER.fieldNames():
            # What an older version made lacks a column, which the public way adds.
            return False
        newest = self._newest()
        if newest is not None and newest.token >= token:
            raise self._fenced()
        added = () if rows is None else transaction.write(rows)
        transaction.commit(token, metadata, added)
        return True

    def _append_publicly(self, rows: DataFrame | None, token: int, metadata: str) -> None:
        nothing = self._spark.createDataFrame([], LEDGER).coalesce(1)
        # The first append makes the table with its properties; later ones ignore them.
        (
            (nothing if rows is None else rows)
            .write.format("delta")
            .mode("append")
            .options(**TABLE_PROPERTIES, **PROPERTIES)
            .option("mergeSchema", "true")
            .option("txnAppId", self._application())
            .option("txnVersion", str(token))
            .option("userMetadata", metadata)
            .save(self._path)
        )

    def _application(self) -> str:
        return f"{_APP}{self._pipeline}"

    def _conflict(self, token: int) -> TransientError:
        """Return what a conflict means: another driver, or maintenance of the ledger's table."""
        newest = self._newest()
        if newest is None or (newest.token >= token and newest.run != self._run):
            return self._fenced()
        message = (
            "The ledger was changed by another writer (OPTIMIZE) while a batch was published. It "
            "was not published; run again."
        )
        return TransientError(message)

    def _fenced(self) -> FencedError:
        message = (
            f"Another run of pipeline '{self._pipeline}' took over the lake; this one stopped and "
            "published nothing more. Nothing is lost: the other run goes on from the last "
            "publication."
        )
        return FencedError(message)


def _as_of(publication: Publication, newest: Entry) -> Publication:
    """Return a publication as the newest entry's driver has it."""
    driver = newest.publication
    return replace(
        publication,
        writer=driver.writer,
        run=driver.run,
        token=driver.token,
        released=driver.released,
        read_at=newest.version,
    )
