"""``python -m tests.benchmarks.backlog``: the driver's memory over a backlog of any size.

A made-up PostgreSQL log of small transactions (two rows, in two topics) with one large transaction
in the middle, read from the beginning by one run. Its records are computed where they are read, so
a backlog of any size costs no disk. What is printed is what garbage collections left in the heap
at most, the process's peak (Python and the objects of the windows' ENDs), and that every
transaction was published. Rows that windows hold are in this heap, too: Spark is local.

Rejected: to watch the heap's usage itself, which reaches ``--heap`` in any long run.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lakeingest.apply.run import run_pipeline
from lakeingest.config import load_config
from lakeingest.frame_schemas import RECORD
from lakeingest.session import session
from lakeingest.source.contract import OffsetRange, TopicPartition, Watermarks
from lakeingest.source.record import as_record
from tests.config.settings import recorded

PREFIX = "backlog"
MIXED, SMALL = (TopicPartition(f"{PREFIX}.public.{name}", 0) for name in ("mixed", "small"))
ENDS = TopicPartition(f"{PREFIX}.transaction", 0)
KEYS = 1_000
STEP = 10
"""LSNs per row."""


@dataclass(frozen=True)
class Backlog:
    """A log as a ``Source``: small transactions, and one with ``large`` rows in the middle."""

    spark: SparkSession
    transactions: int
    large: int

    def topics(self) -> tuple[str, ...]:
        """Return the data topics."""
        return (MIXED.topic, SMALL.topic)

    def watermarks(self, topics: Sequence[str]) -> Mapping[TopicPartition, Watermarks]:
        """Return the bounds of the partitions."""
        highs = {
            MIXED: self.transactions - 1 + self.large,
            SMALL: self.transactions - 1,
            ENDS: 2 * self.transactions,
        }
        return {p: Watermarks(0, high) for p, high in highs.items() if p.topic in topics}

    def read(self, ranges: Sequence[OffsetRange]) -> DataFrame:
        """Compute the records of ``ranges``."""
        made = {MIXED.topic: self._mixed, SMALL.topic: self._small, ENDS.topic: self._marks}
        frames = [
            made[part.topic](self.spark.range(part.start, part.end, 1, 4), part.topic)
            for part in ranges
        ]
        return reduce(DataFrame.unionAll, frames, self.spark.createDataFrame([], RECORD))

    def close(self) -> None:
        """Nothing to release."""

    @property
    def _middle(self) -> int:
        return self.transactions // 2

    def _commit(self, number: Column) -> Column:
        """Return the LSN of the commit of a transaction; the large one takes more of the log."""
        shift = F.when(number >= self._middle, STEP * self.large).otherwise(0)
        return (number + 1) * STEP + shift

    def _mixed(self, offsets: DataFrame, topic: str) -> DataFrame:
        behind = self._middle + self.large
        offset = F.col("id")
        number = (
            F.when(offset < self._middle, offset)
            .when(offset < behind, self._middle)
            .otherwise(offset - self.large + 1)
        )
        inside = F.when(offset.between(self._middle, behind - 1), offset - self._middle)
        key = F.coalesce(inside + KEYS, F.pmod(number, F.lit(KEYS)))
        lsn = F.coalesce(
            self._commit(F.lit(self._middle - 1)) + (inside + 1) * STEP - 5,
            self._commit(number) - 5,
        )
        return self._rows(offsets, topic, number, key, lsn)

    def _small(self, offsets: DataFrame, topic: str) -> DataFrame:
        number = F.col("id") + (F.col("id") >= self._middle).cast("long")
        lsn = self._commit(number) - 4
        return self._rows(offsets, topic, number, F.pmod(number, F.lit(KEYS)), lsn)

    def _rows(
        self, offsets: DataFrame, topic: str, number: Column, key: Column, lsn: Column
    ) -> DataFrame:
        table = topic.rpartition(".")[2]
        value = F.format_string(
            '{"before":null,"after":{"id":%d,"v":%d},"source":{"version":"3.7.0.Final",'
            '"connector":"postgresql","name":"' + PREFIX + '","ts_ms":1000,"snapshot":"false",'
            '"db":"b","sequence":"[\\"%d\\",\\"%d\\"]","schema":"public","table":"' + table + '",'
            '"txId":%d,"lsn":%d},"transaction":{"id":"%d:%d","total_order":1,'
            '"data_collection_order":1},"op":"u","ts_ms":1000}',
            key,
            number,
            self._commit(number - 1),
            lsn,
            number,
            lsn,
            number,
            lsn,
        )
        return _records(offsets, topic, F.format_string('{"id":%d}', key), value)

    def _marks(self, offsets: DataFrame, topic: str) -> DataFrame:
        number = F.floor(F.col("id") / 2)
        is_end = F.col("id") % 2 == 1
        id_ = F.format_string("%d:%d", number, self._commit(number))
        begin = F.format_string('{"status":"BEGIN","id":"%s","ts_ms":1000}', id_)
        counted = '{"data_collection":"public.%s","event_count":%d}'
        small = F.format_string(
            f"{counted},{counted}", F.lit("mixed"), F.lit(1), F.lit("small"), F.lit(1)
        )
        large = F.format_string(counted, F.lit("mixed"), F.lit(self.large))
        is_large = number == self._middle
        end = F.format_string(
            '{"status":"END","id":"%s","event_count":%d,"data_collections":[%s],"ts_ms":1000}',
            id_,
            F.when(is_large, self.large).otherwise(2),
            F.when(is_large, large).otherwise(small),
        )
        key = F.format_string('{"id":"%s"}', id_)
        return _records(offsets, topic, key, F.when(is_end, end).otherwise(begin))


def _records(offsets: DataFrame, topic: str, key: Column, value: Column) -> DataFrame:
    return as_record(
        offsets.select(
            F.lit(topic).alias("topic"),
            F.lit(0).alias("partition"),
            F.col("id").alias("offset"),
            F.timestamp_millis(F.lit(1000)).alias("timestamp"),
            key.cast("binary").alias("key"),
            value.cast("binary").alias("value"),
            F.lit(None).alias("headers"),
        )
    )


@contextmanager
def watched_heap(spark: SparkSession) -> Iterator[list[int]]:
    """Give a list whose only item is the most that a collection has left in the heap so far."""
    jvm: Any = spark._jvm
    pools = [
        pool
        for pool in jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
        if pool.getType().toString() == "Heap memory"
    ]
    most, over = [0], threading.Event()

    def watch() -> None:
        while not over.wait(0.25):
            left = [pool.getCollectionUsage() for pool in pools]
            most[0] = max(most[0], sum(usage.getUsed() for usage in left if usage))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield most
    finally:
        over.set()
        watcher.join()


def main() -> int:
    """Run over a backlog and print the driver's memory."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--transactions", type=int, default=200_000)
    parser.add_argument("--large", type=int, default=100_000, help="rows of the large one")
    parser.add_argument("--window", type=int, default=50_000, help="lakeingest.window.max.records")
    parser.add_argument("--heap", default="1g")
    arguments = parser.parse_args()
    spark = session("backlog", cores=2, extra={"spark.driver.memory": arguments.heap}, kafka=False)
    source = Backlog(spark, arguments.transactions, arguments.large)
    with tempfile.TemporaryDirectory() as folder, watched_heap(spark) as most:
        config = load_config(
            {
                **recorded(folder, f"{folder}/lake", PREFIX),
                "lakeingest.window.max.records": str(arguments.window),
                "lakeingest.batch.max.events": str(arguments.window // 2),
                "lakeingest.table.public.mixed.schema": "id BIGINT, v BIGINT",
                "lakeingest.table.public.small.schema": "id BIGINT, v BIGINT",
            }
        )
        summary = run_pipeline(spark, config, source=source)
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    sys.stdout.write(
        f"{summary.transactions} transactions, {summary.events} rows, {summary.batches} batches in "
        f"{summary.seconds:.0f} s: heap after collections at most {most[0] >> 20} MiB of "
        f"{arguments.heap}, Python at most {resident} MiB\n"
    )
    return 0 if summary.transactions == arguments.transactions else 1


if __name__ == "__main__":
    sys.exit(main())
