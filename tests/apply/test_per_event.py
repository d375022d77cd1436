"""Pipelines without transactions: a key change is a delete and a create, which may come apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from pyspark.sql import SparkSession

from lakeingest.apply.window.per_event import _lone_deletes
from lakeingest.frame_schemas import MOVES_ON, Kind
from lakeingest.source.contract import Source, TopicPartition, Watermarks


class Partitions:
    """A source of topics with so many partitions each."""

    def __init__(self, **counts: int) -> None:
        self.counts = counts

    def watermarks(self, topics: Sequence[str]) -> Mapping[TopicPartition, Watermarks]:
        return {
            TopicPartition(topic, number): Watermarks(0, 9)
            for topic in topics
            for number in range(self.counts[topic])
        }


def test_a_delete_waits_for_its_create_where_that_must_come_behind_it(spark: SparkSession) -> None:
    """With several partitions it may have been read before, and nothing may follow the delete."""
    rows = [
        ("one", 0, 1, False),
        ("one", 0, 2, True),
        ("over", 0, 1, True),
        ("over", 0, 2, False),
        ("two", 0, 5, True),
        ("two", 1, 4, False),
    ]
    columns = f"topic STRING, partition INT, offset BIGINT, {MOVES_ON} BOOLEAN, kind STRING"
    changes = spark.createDataFrame([(*row, Kind.ROW) for row in rows], columns)
    source: Any = Partitions(one=1, over=1, two=2)
    assert _lone_deletes(changes, cast(Source, source)) == {TopicPartition("one", 0): 2}
