"""The floor: read, decode, fold and write the same rows, without merging them into anything.

Nothing that ends in a table can be cheaper, so a contestant's share of the floor tells how much of
its time is merging, committing and bookkeeping. It takes the recipe's decoding, the cheapest fold
we measured (``max_by``, one row per key in memory) and writes tables side by side.

It is the same for every table format, Hudi's two among them: copy-on-write ends in Parquet, too.
Merge-on-read appends rows as Avro, which could be written a little faster than Parquet; but a floor
of our own in Avro would leave out what makes a log file one (the look-up of its bucket, block
headers, markers), so it would be lower and say no more. One floor also lets formats be compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakeingest.source.contract import OffsetRange
from tests.benchmarks.contestant import Stream
from tests.benchmarks.recipe import changes
from tests.benchmarks.workload import Table, of_all_tables


@dataclass(frozen=True)
class Floor:
    """Winners of each batch as Parquet files; a reader must still find the last one per key."""

    name: str = "floor"

    def load(self, stream: Stream, target: Path) -> None:
        """Write the snapshot's rows as batch 0."""
        self._write(stream, stream.snapshot, target, 0)

    def run(self, stream: Stream, target: Path) -> None:
        """Write batch after batch."""
        for number, ranges in enumerate(stream.batches, start=stream.begins + 1):
            self._write(stream, ranges, target, number)

    def table(self, stream: Stream, target: Path, table: Table) -> DataFrame:
        """Fold over the batches, which the floor itself never does."""
        written = stream.spark.read.parquet(f"{target / table.name}/*")
        return fold(written, table).select(*table.column_types)

    def _write(
        self, stream: Stream, ranges: tuple[OffsetRange, ...], target: Path, number: int
    ) -> None:
        records = stream.source.read(ranges)

        def write(table: Table) -> None:
            rows = fold(changes(records, table), table)
            rows.write.parquet(str(target / table.name / f"batch-{number}"))

        of_all_tables(write)


def fold(changed: DataFrame, table: Table) -> DataFrame:
    """Return the change with the highest LSN of each key, keeping one row per key in memory."""
    row = F.struct(*(name for name in changed.columns if name not in table.key))
    return (
        changed.groupBy(*table.key)
        .agg(F.max_by(row, F.col("_lsn")).alias("row"))
        .select(*table.key, "row.*")
    )
