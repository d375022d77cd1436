"""The latest change per key of many tables, and of a snapshot without a fold."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakeingest.apply.batch.latest_per_key import LatestPerKey, latest, latest_of_snapshot
from lakeingest.frame_schemas import Kind

COLUMNS = "collection string, kind string, key binary, op string, value binary, position string"


def changes(spark: SparkSession, *rows: tuple[str, str, str, str]) -> DataFrame:
    """Rows of a snapshot: table, key, operation and position; the value says all of it."""
    frame = [
        (table, Kind.SNAPSHOT, key.encode(), op, f"{table} {key} {at}".encode(), at)
        for table, key, op, at in rows
    ]
    return spark.createDataFrame(frame, COLUMNS)


def content(newest: LatestPerKey | None, table: str) -> list[tuple[bytes, str, bytes, str, str]]:
    assert newest is not None
    rows = newest.of(table).select("key", "op", "value", "position", "first_op").collect()
    return sorted((bytes(key), op, bytes(value), at, first) for key, op, value, at, first in rows)


def plan_of(newest: LatestPerKey | None, table: str) -> str:
    assert newest is not None
    frame: Any = newest.of(table)
    return str(frame._jdf.queryExecution().optimizedPlan().toString())


SNAPSHOT = (
    ("a", "1", "r", "010"),
    ("a", "2", "r", "010"),
    ("b", "1", "r", "010"),
    ("b", "1", "r", "020"),
    ("b", "2", "r", "010"),
    ("c", "1", "r", "010"),
)
"""Table b has a key twice."""


def test_a_snapshot_has_the_latest_change_of_each_key_whether_it_is_folded_or_not(
    spark: SparkSession,
) -> None:
    rows = changes(spark, *SNAPSHOT)
    folded = latest(rows, ["a", "b"], ["c"])
    of_snapshot = latest_of_snapshot(rows, ["a", "b"], ["c"])
    for table in ("a", "b"):
        assert content(of_snapshot, table) == content(folded, table)
    assert [value for _, _, value, *_ in content(of_snapshot, "b")] == [b"b 1 020", b"b 2 010"]
    assert folded is not None
    assert of_snapshot is not None
    assert (of_snapshot.keys, of_snapshot.inserted) == (folded.keys, folded.inserted)
    assert of_snapshot.keys == {"a": 2, "b": 2, "c": 1}


def test_a_snapshot_with_each_key_once_is_not_folded(spark: SparkSession) -> None:
    rows = changes(spark, *SNAPSHOT)
    newest = latest_of_snapshot(rows, ["a", "c"])
    assert content(newest, "a") == content(latest(rows, ["a", "c"]), "a")
    # A fold is checkpointed: its plan has lost the rows that it was made of.
    assert "kind" in plan_of(newest, "a")
    assert "kind" not in plan_of(latest(rows, ["a", "c"]), "a")


def test_a_snapshot_without_such_a_table_is_asked_nothing(spark: SparkSession) -> None:
    assert latest_of_snapshot(changes(spark, *SNAPSHOT), []) is None
