"""What every contestant is given and must do; the clock runs only in ``run``.

Loading the snapshot and the first batch, opening the source and computing where the batches lie
happen before the clock starts. (In topics of several partitions, only the first transactions show
that the snapshot is whole, so ours publishes it with them.) For the recipes that is a gift: under
Structured Streaming they would pay for offsets and checkpoints, ours plans its batches while the
clock runs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from lakeingest.apply.run_session import run_session
from lakeingest.source.contract import OffsetRange
from tests.benchmarks.source import ParquetSource
from tests.benchmarks.workload import EVENTS_PER_TRANSACTION, EventFolder, Table


@dataclass(frozen=True)
class Stream:
    """A stretch of the generated log, cut into batches of whole transactions.

    ``own_source`` reads the same in the session that a run makes for itself, as it does from Kafka,
    ``first_source`` the part of it up to the end of the first batch. ``begins`` is the number of
    the first batch.
    """

    spark: SparkSession
    folder: EventFolder
    source: ParquetSource
    own_source: ParquetSource
    first_source: ParquetSource
    transactions: int
    batch_events: int
    snapshot: tuple[OffsetRange, ...]
    batches: tuple[tuple[OffsetRange, ...], ...]
    begins: int = 0

    @property
    def first(self) -> Stream:
        """Its first batch."""
        return replace(self, own_source=self.first_source, batches=self.batches[:1])

    @property
    def rest(self) -> Stream:
        """What follows the first batch."""
        size = self.batch_events // EVENTS_PER_TRANSACTION
        number = self.transactions - min(size, self.transactions)
        return replace(self, transactions=number, batches=self.batches[1:], begins=1)

    @property
    def events(self) -> int:
        """Data events in the stretch; BEGIN and END are not counted."""
        return self.transactions * EVENTS_PER_TRANSACTION


def cut(spark: SparkSession, folder: EventFolder, transactions: int, batch_events: int) -> Stream:
    """Return the first ``transactions`` of ``folder`` in batches of ``batch_events``."""
    size = batch_events // EVENTS_PER_TRANSACTION
    if size < 1:
        msg = f"a batch must hold a transaction of {EVENTS_PER_TRANSACTION} events: {batch_events}"
        raise ValueError(msg)
    source = ParquetSource(spark, folder, until=transactions)
    own_session = run_session(spark)
    return Stream(
        spark=spark,
        folder=folder,
        source=source,
        own_source=ParquetSource(own_session, folder, until=transactions),
        first_source=ParquetSource(own_session, folder, until=min(size, transactions)),
        transactions=transactions,
        batch_events=batch_events,
        snapshot=source.ranges(None, 0),
        batches=tuple(
            source.ranges(start, min(start + size, transactions))
            for start in range(0, transactions, size)
        ),
    )


class Contestant(Protocol):
    """One way to bring the events into tables."""

    @property
    def name(self) -> str:
        """What the report calls it."""

    def load(self, stream: Stream, target: Path) -> None:
        """Bring the snapshot into a new ``target``. Not timed."""

    def run(self, stream: Stream, target: Path) -> None:
        """Bring every batch of ``stream`` into ``target``. Timed."""

    def table(self, stream: Stream, target: Path, table: Table) -> DataFrame:
        """Return the rows of ``table`` as a reader sees them, with the source's columns."""
