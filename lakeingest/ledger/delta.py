"""Keep the ledger as a Delta table beside the lake's tables.

One append is one publication: a row for the batch and one for each source transaction, in one
commit. The commit's metadata holds the same publication as JSON. So the head is read from the
newest log entries, at the same cost after a million batches; the rows are for readers and SQL.

A run claims the ledger before it writes: it appends a writer number above all earlier ones.
Publications and claims share one ``txnAppId`` with ascending tokens. Delta skips or refuses the
next append of an older driver; that driver notices it and ends (P7). Rejected: a lease with a
clock. A process that is stopped and revived does not know that its lease is over.

A driver that ends properly releases the ledger: it writes nothing after that. It has fenced the
drivers before it. So the next driver neither reads nor fences tables that it does not write, and a
run costs what it changes, however many tables are idle. Claims and releases are commits without a
row or a file.

A claim does not give the lake's progress: it repeats the head that its driver read, and another
driver may have published since. So the head is searched for below the newest claims. A claim that
directly follows the entry that its driver read ends the search: runs that fail one after another
leave a claim each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakeingest.cast import no_rows
from lakeingest.commit_note import claim_token, release_token
from lakeingest.engine.delta.files import available
from lakeingest.engine.delta.local_disk import committing
from lakeingest.engine.delta.log import TABLE_PROPERTIES, commits, is_delta_table
from lakeingest.engine.delta.transaction import DeltaTransaction
from lakeingest.errors import ConfigError, FencedError, TransientError
from lakeingest.folders import LEDGER_FOLDER
from lakeingest.frame_schemas import LEDGER
from lakeingest.ledger.compaction import PROPERTIES, compact
from lakeingest.ledger.publication import (
    CLAIM,
    PUBLICATION,
    RELEASE,
    TRANSACTION,
    Entry,
    Publication,
)
from lakeingest.ledger.rows import InPart, publication_rows, transaction_rows

_APP = "lakeingest-ledger:"
_ABOVE = "~"
"""Sorts above every character of a position."""


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
            direct: Whether an append may use lakeingest's own ``DeltaTransaction``.
            transaction_topic: Topic of the ENDs, whose offsets the ledger stores.
        """
        self._spark = spark
        self._direct = direct and available(spark)
        self._path = path
        self._pipeline = pipeline
        self._run = run
        self._transaction_topic = transaction_topic

    def head(self) -> Publication:
        """Return the newest publication (batch 0 before the first one).

        Its ``writer`` is that of the newest claim.

        Raises:
            ConfigError: The ledger belongs to another pipeline.
        """
        newest: Entry | None = None
        for entry in self._entries():
            newest = newest or entry
            if entry.certain:
                return _as_of(entry.publication, newest)
        if newest is not None:
            # Nothing was published yet, or the log no longer goes back to the publication.
            return _as_of(newest.publication, newest)
        if not is_delta_table(self._spark, self._path):
            return Publication()
        message = (
            f"The folder {LEDGER_FOLDER} under lakeingest.target.path holds a table that "
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
        """Shut out every earlier driver; return the head, with this run as its writer.

        The result includes what a driver published between the read of ``head`` and the claim, if
        it released the ledger again. After the claim no earlier driver can publish. ``released``
        says whether they all ended properly.

        Raises:
            FencedError: Another driver has claimed the ledger since, and not released it.
        """
        newest = next(self._entries(), None)
        if newest is not None and newest.publication.released:
            # The claim repeats the head, so it must be the one that was released.
            head = _as_of(newest.publication, newest)
        writer = head.writer + 1
        token = claim_token(writer)
        claim_entry = replace(head, writer=writer, run=self._run, token=token, schemas={})
        self._append(None, claim_entry, CLAIM)
        entries = self._entries()
        own = next(entries, None)
        if own is None or own.publication.run != self._run:
            raise self._fenced_error()
        below = next(entries, None)
        if below is None or not below.publication.released:
            return self.head()
        return replace(_as_of(below.publication, own), released=True)

    def release(self, head: Publication) -> None:
        """Release the lake: from now on this run writes nothing, unless it claims again.

        Do nothing if another driver has claimed the ledger: that driver checks every table. Do
        nothing before the first publication: a claim may hold the frontier of an adopted lake.

        Args:
            head: The newest publication; it includes every table commit of this run.
        """
        newest = self._newest()
        if newest is None or (newest.run, newest.batch) != (self._run, head.batch or None):
            return
        token = release_token(head.writer)
        release_entry = replace(head, run=self._run, token=token, opened=(), schemas={})
        with suppress(FencedError):
            self._append(None, release_entry, RELEASE)

    def _entries(self) -> Iterator[Entry]:
        """Yield the entries, newest first; read each one only when it is needed."""
        for commit in commits(self._spark, self._path):
            entry = Entry.from_json(commit.metadata, commit.version)
            if entry is not None:
                self._must_be_ours(entry.pipeline)
                yield entry

    def _newest(self) -> Publication | None:
        """Return the publication of the newest entry, whatever the entry's kind."""
        return next((entry.publication for entry in self._entries()), None)

    def publish(
        self,
        publications: Sequence[Publication],
        transactions: DataFrame,
        in_part: InPart = MappingProxyType({}),
    ) -> None:
        """Make a batch visible: one append, one commit.

        Args:
            publications: The batch that becomes visible; or its transactions, one publication for
                each, in their order.
            transactions: The batch's source transactions: ``id``, ``end_offset``,
                ``end_position``, ``committed_at``, ``event_count``, ``collections``.
            in_part: The rows that some of these transactions lack, if it is known which.

        Raises:
            FencedError: Another driver has claimed the ledger.
        """
        head, number = publications[-1], len(publications)
        of_batch = publication_rows(self._spark, publications, self._transaction_topic)
        rows = of_batch.unionByName(transaction_rows(publications, transactions, in_part))
        self._append(rows.coalesce(1), head, PUBLICATION)
        compact(self._spark, self._path, self._pipeline, head.batch, number)

    def publish_alone(self, publication: Publication) -> None:
        """Publish a batch that changes no table: an epoch begins, or more of the log was read.

        Raises:
            FencedError: Another driver has claimed the ledger.
        """
        without_notes = replace(publication, notes={})
        rows = publication_rows(self._spark, [without_notes], self._transaction_topic)
        self._append(rows.coalesce(1), publication, PUBLICATION)

    def unknown_ends(self, positions: Sequence[str]) -> int:
        """Count the END positions that no published transaction has.

        Args:
            positions: Positions, or prefixes of positions; all of one length.
        """
        if not positions:
            return 0
        place = F.col("end_position")
        prefix = F.substring(place, 1, len(positions[0])).alias("begins")
        # Filter by range, too: Delta then skips files by their statistics.
        within = place.between(min(positions), max(positions) + _ABOVE)
        published = (
            self._spark.read.format("delta")
            .load(self._path)
            .where((F.col("kind") == TRANSACTION) & within & prefix.isin(*positions))
        )
        return len(set(positions)) - published.select(prefix).distinct().count()

    def notes(self, collection: str) -> tuple[str, ...]:
        """Return a table's notes that are of use: the newest one, and the newest with a schema.

        Read the whole ledger: for when the table's own log no longer holds the notes.
        """
        if not is_delta_table(self._spark, self._path):
            return ()
        ledger = self._spark.read.format("delta").load(self._path)
        if "notes" not in ledger.columns:
            return ()
        note = F.col("notes")[collection]
        schema = F.get_json_object(note, "$.schema")
        newest_notes = ledger.where((F.col("kind") == PUBLICATION) & note.isNotNull()).agg(
            F.max_by(note, "batch").alias("newest"),
            F.max_by(note, F.when(schema != "", F.col("batch"))).alias("schema"),
        )
        row = newest_notes.first()
        return tuple(text for text in row or () if text)

    def _append(self, rows: DataFrame | None, publication: Publication, kind: str) -> None:
        """Commit an entry, with rows or without.

        Raises:
            FencedError: Another driver has claimed the ledger.
        """
        metadata = publication.to_json(self._pipeline, kind)
        try:
            if self._append_directly(rows, publication.token, metadata):
                return
            self._append_publicly(rows, publication.token, metadata)
        except Exception as error:
            if "Concurrent" in f"{type(error).__name__} {error}":
                raise self._conflict_error(publication.token) from error
            raise
        # Delta skips a token that is not above all earlier ones, without an error.
        newest = self._newest()
        if newest is None or (newest.run, newest.token) != (self._run, publication.token):
            raise self._fenced_error()

    def _append_directly(self, rows: DataFrame | None, token: int, metadata: str) -> bool:
        """Append in a ``DeltaTransaction``; return False if that is not possible."""
        if not self._direct:
            return False
        # An append reads no existing row, so a concurrent compaction does not matter.
        transaction = DeltaTransaction(self._spark, self._path, self._application(), rows=False)
        if not transaction.plain or transaction.schema.fieldNames() != LEDGER.fieldNames():
            # A ledger of an older version lacks a column; ``_append_publicly`` adds it.
            return False
        newest = self._newest()
        if newest is not None and newest.token >= token:
            raise self._fenced_error()
        new_files = () if rows is None else transaction.write(rows)
        transaction.commit(token, metadata, new_files)
        return True

    def _append_publicly(self, rows: DataFrame | None, token: int, metadata: str) -> None:
        frame = no_rows(self._spark, LEDGER) if rows is None else rows
        # The first append makes the table with these properties; later ones ignore them.
        writer = (
            frame.write.format("delta")
            .mode("append")
            .options(**TABLE_PROPERTIES, **PROPERTIES)
            .option("mergeSchema", "true")
            .option("txnAppId", self._application())
            .option("txnVersion", str(token))
            .option("userMetadata", metadata)
        )
        with committing(self._spark, self._path):
            writer.save(self._path)

    def _application(self) -> str:
        return f"{_APP}{self._pipeline}"

    def _conflict_error(self, token: int) -> TransientError:
        """Return a conflict's error: another driver, or maintenance of the ledger's table."""
        newest = self._newest()
        if newest is None or (newest.token >= token and newest.run != self._run):
            return self._fenced_error()
        message = (
            "The ledger was changed by another writer (OPTIMIZE) while a batch was published. It "
            "was not published; run again."
        )
        return TransientError(message)

    def _fenced_error(self) -> FencedError:
        message = (
            f"Another run of pipeline '{self._pipeline}' took over the lake; this one stopped and "
            "published nothing more. Nothing is lost: the other run goes on from the last "
            "publication."
        )
        return FencedError(message)


def _as_of(publication: Publication, newest: Entry) -> Publication:
    """Return a publication with writer, run, token and release of the newest entry."""
    driver = newest.publication
    return replace(
        publication,
        writer=driver.writer,
        run=driver.run,
        token=driver.token,
        released=driver.released,
        read_at=newest.version,
    )
