"""The generated log as a source: explicit offset ranges over Parquet, at one price for everybody.

Every contestant reads through this class, ours as its ``Source``, the recipes by the offset ranges
of the same transactions. The rejected way, text files of recorded records, would make inflating
and splitting the text the largest part of every contestant's time, and a ratio would say little.

``until`` shows only the first transactions, so that a target can be loaded with the snapshot
(``until=0``) before the clock starts, and meets the stream as a log that has grown meanwhile.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakeingest.frame_schemas import RECORD
from lakeingest.source.contract import OffsetRange, TopicPartition, Watermarks
from tests.benchmarks.workload import DATA_PARTITIONS, TABLES, TRANSACTION_TOPIC, EventFolder

PARTITIONS = {TRANSACTION_TOPIC: 1, **{table.topic: DATA_PARTITIONS for table in TABLES}}


class ParquetSource:
    """Implements ``lakeingest.source.contract.Source`` over a folder of ``generate``."""

    def __init__(
        self, spark: SparkSession, folder: EventFolder, *, until: int | None = None
    ) -> None:
        """Open ``folder``, showing the snapshot and the first ``until`` transactions.

        Files are listed and bounds computed here, outside of what is timed.
        """
        self._index = spark.read.parquet(folder.index).persist()
        self._records = spark.read.schema(RECORD).parquet(folder.records).select(RECORD.names)
        self._high = self.ends(until)

    def topics(self) -> tuple[str, ...]:
        """Return the data topics."""
        return tuple(sorted(table.topic for table in TABLES))

    def watermarks(self, topics: Sequence[str]) -> Mapping[TopicPartition, Watermarks]:
        """Return the bounds of every partition of ``topics``, empty partitions included."""
        return {
            partition: Watermarks(0, high)
            for partition, high in self._high.items()
            if partition.topic in topics
        }

    def read(self, ranges: Sequence[OffsetRange]) -> DataFrame:
        """Return the records of ``ranges``; one scan per topic, so that none reads another's."""
        of_topic: dict[str, list[OffsetRange]] = defaultdict(list)
        for offset_range in ranges:
            of_topic[offset_range.topic].append(offset_range)
        if not of_topic:
            return self._records.where(F.lit(False))
        return reduce(
            DataFrame.unionAll,
            (
                self._records.where(F.col("topic") == topic)
                # The files of a topic are skipped by this, and not by the ranges of partitions.
                .where(F.col("offset") >= min(part.start for part in parts))
                .where(F.col("offset") < max(part.end for part in parts))
                .where(
                    reduce(
                        or_,
                        (
                            (F.col("partition") == part.partition)
                            & (F.col("offset") >= part.start)
                            & (F.col("offset") < part.end)
                            for part in parts
                        ),
                    )
                )
                for topic, parts in of_topic.items()
            ),
        )

    def close(self) -> None:
        """Release the index."""
        self._index.unpersist()

    def ends(self, until: int | None) -> dict[TopicPartition, int]:
        """Return the end offset of every partition after ``until`` transactions (None: all)."""
        shown = self._index if until is None else self._index.where(F.col("tx") < until)
        ends = {
            TopicPartition(row["topic"], row["partition"]): int(row["end"])
            for row in shown.groupBy("topic", "partition")
            .agg((F.max("offset") + 1).alias("end"))
            .collect()
        }
        return {
            partition: ends.get(partition, 0)
            for topic, count in PARTITIONS.items()
            for partition in (TopicPartition(topic, number) for number in range(count))
        }

    def ranges(self, start: int | None, end: int) -> tuple[OffsetRange, ...]:
        """Return where the data records of the transactions ``start <= n < end`` lie.

        Args:
            start: First transaction; None begins with the snapshot.
            end: The transaction after the last one.
        """
        before = dict.fromkeys(self._high, 0) if start is None else self.ends(start)
        return tuple(
            OffsetRange(partition.topic, partition.partition, before[partition], high)
            for partition, high in self.ends(end).items()
            if high > before[partition] and partition.topic != TRANSACTION_TOPIC
        )
