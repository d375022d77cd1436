"""Pipelines without transactions: a key change is a delete and a create, which may come apart."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from lakeingest.apply.window.per_event import _lone_deletes
from lakeingest.frame_schemas import MOVES_ON, Kind
from lakeingest.source.contract import TopicPartition, Watermarks
from tests.apply.test_offset_ranges import Bounds


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
    partitions = {"one": 1, "over": 1, "two": 2}
    places = [TopicPartition(name, n) for name, count in partitions.items() for n in range(count)]
    source = Bounds(dict.fromkeys(places, Watermarks(0, 9)))
    assert _lone_deletes(changes, source) == {TopicPartition("one", 0): 2}
    # Where nothing waits, no broker is asked.
    unasked: Any = None
    assert _lone_deletes(changes.where("topic = 'over'"), unasked) == {}
