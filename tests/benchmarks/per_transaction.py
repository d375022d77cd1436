"""What a version per source transaction costs, beside one MERGE for each.

``python -m tests.benchmarks.per_transaction [--rows N]… [--size K]… [--inserts]`` loads a table of
N rows, warms up, and applies transactions (``--transactions N``) that update K of its rows each, or
insert K rows, with ``lakeingest.commit.mode=per-transaction``: reading, deciding, writing and
publishing are timed. The MERGE of the same rows into a copy of the table is timed beside it, one
transaction after another, without anything else that a pipeline does. Then the log and the reads of
a table with so many versions are measured, before and after ``lakeingest maintain``, and the
stretch is run again.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lakeingest.apply.maintenance.maintain import maintain_lake
from lakeingest.apply.run import run_pipeline
from lakeingest.apply.run_session import run_session
from lakeingest.config import load_config
from lakeingest.config.model import PipelineConfig
from lakeingest.reader import open_lake
from lakeingest.session import session
from tests.benchmarks.effort import effort
from tests.benchmarks.generate import (
    AFTER,
    BEGIN,
    BOUNDARY_KEY,
    ENVELOPE,
    FIRST_LSN,
    FIRST_MICROS,
    FIRST_XID,
    KEY,
    LSN_STRIDE,
    TRANSACTION,
    fill,
    write_log,
)
from tests.benchmarks.source import ParquetSource
from tests.benchmarks.workload import ACCOUNTS, PREFIX, TRANSACTION_TOPIC, EventFolder
from tests.config.settings import recorded

_END = (
    '{"status":"END","id":"<xid>:<lsn>","event_count":<size>,"data_collections":['
    '{"data_collection":"public.pgbench_accounts","event_count":<size>}],"ts_ms":<source_ms>}'
)
WARM, MERGES = 1_000, 12


@dataclass(frozen=True)
class Shape:
    """A table of ``rows`` rows, and transactions that update or insert ``size`` rows each."""

    rows: int
    size: int
    transactions: int
    inserts: bool = False

    @property
    def first_row(self) -> Column:
        """Key of the first row of transaction ``tx``; the others follow it."""
        if self.inserts:
            return F.col("tx") * self.size + self.rows + 1
        return F.pmod(F.xxhash64("tx"), F.lit(self.rows // self.size)) * self.size + 1


def generate(spark: SparkSession, folder: EventFolder, shape: Shape) -> None:
    """Write the records of a snapshot and of transactions, and their index."""
    ms = F.floor(F.col("us") / 1_000)
    snapshot = spark.range(1, shape.rows + 1).select(
        F.lit(-1).cast("long").alias("tx"),
        F.col("id").alias("row"),
        F.col("id").alias("aid"),
        F.lit(0).alias("abalance"),
        F.lit(FIRST_XID - 1).alias("xid"),
        F.lit(FIRST_LSN).alias("lsn"),
        F.lit(FIRST_MICROS - 1_000_000).alias("us"),
        F.concat(
            F.lit('"'),
            F.when(F.col("id") == shape.rows, "last")
            .when(F.col("id") == 1, "first")
            .otherwise("true"),
            F.lit('"'),
        ).alias("snapshot"),
        F.lit("null").alias("transaction"),
        F.lit("r").alias("op"),
    )
    transactions = (
        spark.range(shape.transactions)
        .withColumnRenamed("id", "tx")
        .withColumns(
            {
                "xid": F.col("tx") + FIRST_XID,
                "us": F.col("tx") * 1_000 + FIRST_MICROS,
                "first": shape.first_row,
            }
        )
    )
    updates = (
        transactions.select("*", F.explode(F.sequence(F.lit(0), F.lit(shape.size - 1))).alias("n"))
        .withColumn("lsn", FIRST_LSN + F.col("tx") * LSN_STRIDE + 8 + F.col("n"))
        .select(
            "tx",
            F.col("n").cast("long").alias("row"),
            (F.col("first") + F.col("n")).alias("aid"),
            F.col("tx").alias("abalance"),
            "xid",
            "lsn",
            "us",
            F.lit("null").alias("snapshot"),
            fill(TRANSACTION, order=F.col("n") + 1).alias("transaction"),
            F.lit("c" if shape.inserts else "u").alias("op"),
        )
    )
    rows = snapshot.unionByName(updates).select(
        F.lit(ACCOUNTS.topic).alias("topic"),
        F.lit(0).alias("partition"),
        "tx",
        "row",
        fill(KEY[ACCOUNTS]).alias("key"),
        fill(
            ENVELOPE,
            after=fill(AFTER[ACCOUNTS], account_bid=F.lit(1)),
            table=F.lit(ACCOUNTS.name),
            source_ms=ms,
            source_us=F.col("us"),
            ms=ms,
            nanos=F.lit("000"),
            previous=fill('\\"<lsn>\\"'),
        ).alias("value"),
    )
    marks = [
        transactions.select(
            F.lit(TRANSACTION_TOPIC).alias("topic"),
            F.lit(0).alias("partition"),
            "tx",
            F.lit(number).cast("long").alias("row"),
            fill(BOUNDARY_KEY, lsn=lsn).alias("key"),
            fill(text, lsn=lsn, source_ms=ms, size=F.lit(shape.size)).alias("value"),
        )
        for number, text, lsn in (
            (0, BEGIN, FIRST_LSN + F.col("tx") * LSN_STRIDE + 4),
            (1, _END, FIRST_LSN + (F.col("tx") + 1) * LSN_STRIDE),
        )
    ]
    at = F.timestamp_millis(F.lit(FIRST_MICROS // 1_000))
    headers = F.lit(None).cast("array<struct<key:string,value:binary>>")
    write_log(spark, folder, [rows, *marks], at, headers, 1 << 20)


class Bench:
    """One table and its versions."""

    def __init__(self, spark: SparkSession, root: Path, shape: Shape) -> None:
        """Write the log and load the table."""
        self._spark = spark
        self._shape = shape
        self._folder = EventFolder(root / "log")
        self._lake = root / "lake"
        self._shown = 1
        generate(spark, self._folder, shape)
        self.apply(0)
        self._plain = str(root / "plain")
        self._table().write.format("delta").save(self._plain)

    def configuration(self) -> PipelineConfig:
        """Return the pipeline."""
        return load_config(
            {
                **recorded(self._folder.path, self._lake, PREFIX),
                "lakeingest.source.topics": ACCOUNTS.topic,
                "lakeingest.commit.mode": "per-transaction",
                f"lakeingest.table.{ACCOUNTS.collection}.schema": ACCOUNTS.columns,
            }
        )

    def apply(self, transactions: int) -> float:
        """Apply so many more transactions; return the seconds."""
        self._shown += transactions
        source = ParquetSource(run_session(self._spark), self._folder, until=self._shown)
        pipeline = self.configuration()
        return effort(lambda: run_pipeline(self._spark, pipeline, source=source)).seconds

    def merge_seconds(self) -> float:
        """Return what one MERGE of a transaction's rows takes, in a table of its own."""
        seconds = []
        for number in range(MERGES):
            first, size = number * self._shape.size + 1, self._shape.size
            changed = self._table().where(F.col("aid").between(first, first + size - 1))
            rows = changed.withColumn("abalance", F.col("abalance") + 1).localCheckpoint()
            begun = time.monotonic()
            target = DeltaTable.forPath(self._spark, self._plain).alias("t")
            merge = target.merge(rows.alias("s"), "t.aid = s.aid")
            merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
            seconds.append(time.monotonic() - begun)
        return statistics.median(seconds[2:])

    def log_bytes(self) -> float:
        """Return bytes of the log per version."""
        entries = list((self._lake / ACCOUNTS.collection / "_delta_log").glob("*.json"))
        return sum(entry.stat().st_size for entry in entries[-500:]) / len(entries[-500:])

    def reads(self) -> str:
        """Return what reads of the newest version, of one in the middle and of a copy take."""
        lake = open_lake(self._spark, str(self._lake))
        middle = lake.snapshot(self._shown // 2)
        copy = self._spark.read.format("delta").load(self._plain)
        head = median(lambda: total(lake.table(ACCOUNTS.collection)))
        between = median(lambda: total(middle.table(ACCOUNTS.collection)))
        plain = median(lambda: total(copy))
        return f"reads: head {head:.2f} s, middle {between:.2f} s, plain copy {plain:.2f} s"

    def maintain(self) -> float:
        """Maintain the lake; return the seconds."""
        return effort(lambda: maintain_lake(self._spark, self.configuration())).seconds

    def _table(self) -> DataFrame:
        return open_lake(self._spark, str(self._lake)).table(ACCOUNTS.collection)


def total(rows: DataFrame) -> None:
    """Read a column of all rows."""
    rows.agg(F.sum("abalance")).collect()


def median(read: Callable[[], None]) -> float:
    """Return the median seconds of five reads."""
    return statistics.median(effort(read).seconds for _ in range(5))


def measure(spark: SparkSession, root: Path, shape: Shape, stretch: int) -> None:
    """Print the figures of one shape."""
    bench = Bench(spark, root, shape)
    bench.apply(WARM)
    one_merge = bench.merge_seconds()
    what = "inserts" if shape.inserts else "updates"
    title = f"{shape.rows:,} rows, {shape.size} {what} per transaction"
    for moment in ("", ", after maintain"):
        rate = stretch / bench.apply(stretch)
        print(
            f"{title}{moment}: {rate:.0f} transactions/s over {stretch:,}; one MERGE each "
            f"{1 / one_merge:.2f}/s: {rate * one_merge:.0f}x; {bench.log_bytes():,.0f} bytes of "
            f"log per version; {bench.reads()}",
            flush=True,
        )
        if not moment:
            print(f"maintain: {bench.maintain():.1f} s; {bench.reads()}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the shapes that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, action="append")
    parser.add_argument("--size", type=int, action="append")
    parser.add_argument("--transactions", type=int, default=3_000)
    parser.add_argument("--inserts", action="store_true")
    chosen = parser.parse_args(arguments)
    spark = session()
    for rows in chosen.rows or (10_000, 1_000_000):
        for size in chosen.size or (1, 5):
            shape = Shape(rows, size, 1 + WARM + 2 * chosen.transactions, chosen.inserts)
            with tempfile.TemporaryDirectory() as root:
                measure(spark, Path(root), shape, chosen.transactions)
    return 0


if __name__ == "__main__":
    sys.exit(main())
