"""Summarise what a run did, for its report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from lakeingest.config.model import SourceConfig
from lakeingest.ledger.publication import Publication

_PLACES = {
    "metadata": "END at offset {end} of {topic}",
    "boundary": "commit {end}, by its rows",
    "none": "each event on its own",
}
"""Up to where the lake is, by what shows transactions."""


@dataclass(frozen=True)
class BatchSummary:
    """One published batch.

    Attributes:
        batch: Number of its last publication.
        transactions: Source transactions in it.
        events: Row changes read for it.
        seconds: From the start of its first commit until it could be published.
        tables: Merge payloads per collection.
        jobs: Spark jobs that began since the batch before, of whatever thread; 0: unknown.
        publications: Number of its publications: one, or one per transaction.
    """

    batch: int
    transactions: int
    events: int
    seconds: float
    tables: Mapping[str, int]
    jobs: int = 0
    publications: int = 1


@dataclass(frozen=True)
class RunSummary:
    """A finished run.

    Attributes:
        batches: Publications made.
        transactions: Source transactions published.
        events: Row changes read for them.
        rows: Merge payloads per collection, added up.
        seconds: Wall time of the run.
        jobs: Spark jobs that began meanwhile, those of other threads of the application included;
            0: the engine does not say.
        frontier: Up to where everything is applied, as text.
        pending_transactions: Transactions whose END was read and of which rows are missing.
        warnings: What a person should know.
    """

    batches: int
    transactions: int
    events: int
    rows: Mapping[str, int]
    seconds: float
    jobs: int
    frontier: str
    pending_transactions: int
    warnings: tuple[str, ...]

    @property
    def nothing_new(self) -> bool:
        """Whether the run changed nothing."""
        return self.batches == 0


@dataclass
class Tally:
    """Add up what a run did.

    Attributes:
        batches: Number of publications.
        written: Number of batches; one may have several publications.
    """

    batches: int = 0
    written: int = 0
    transactions: int = 0
    events: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    pending: int = 0

    def add(self, batch: BatchSummary) -> None:
        """Add a batch."""
        self.batches += batch.publications
        self.written += 1
        self.transactions += batch.transactions
        self.events += batch.events
        self.rows.update(batch.tables)

    def summary(
        self,
        head: Publication,
        source: SourceConfig,
        seconds: float,
        jobs: int,
        warnings: tuple[str, ...],
    ) -> RunSummary:
        """Return the summary of the run.

        Args:
            head: The newest publication.
            source: The pipeline's source.
            seconds: Wall time of the run.
            jobs: Spark jobs that began meanwhile.
            warnings: What a person should know.
        """
        frontier = head.frontier
        place = "initial snapshot" if frontier.streaming else "nothing yet"
        if frontier.end_offset >= 0:
            place = _PLACES[source.transaction_mode].format(
                end=frontier.end_offset, topic=source.ends_topic
            )
        return RunSummary(
            self.batches,
            self.transactions,
            self.events,
            dict(sorted(self.rows.items())),
            seconds,
            jobs,
            f"batch {head.batch}, {place}",
            self.pending,
            warnings,
        )
