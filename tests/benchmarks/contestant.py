"""What every contestant is given and must do; the clock runs only in ``run``.

Loading the snapshot, opening the source and computing where the batches lie happen before the
clock starts. For the recipes that is a gift: under Structured Streaming they would pay for offsets
and checkpoints, ours plans its batches while the clock runs.
"""

from __future__ import annotations

from dataclasses import dataclass
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

    ``own_source`` reads the same in the session that a run makes for itself, as it does from Kafka.
    """

    spark: SparkSession
    folder: EventFolder
    source: ParquetSource
    own_source: ParquetSource
    transactions: int
    batch_events: int
    snapshot: tuple[OffsetRange, ...]
    batches: tuple[tuple[OffsetRange, ...], ...]

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
    own_source = ParquetSource(run_session(spark), folder, until=transactions)
    return Stream(
        spark=spark,
        folder=folder,
        source=source,
        own_source=own_source,
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
