"""Declared keys that change: what an update is taken apart into, in a real table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from lakeingest.folders import TOMBSTONES
from tests.apply.written import Sent, WrittenLog, table

ORDERS = "public.orders"


def place(number: int) -> Mapping[str, object]:
    lsn = 100 * number + 50
    at = {"schema": "public", "table": "orders", "txId": number, "lsn": lsn}
    return {**at, "sequence": f'["{100 * number}","{lsn}"]'}


def test_a_batch_of_updates_alone_that_change_a_declared_key_leaves_tombstones(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = WrittenLog(tmp_path / "log", "postgresql")
    log.transaction("1:200", Sent(ORDERS, 1, 10, place(1), "c"))
    log.transaction("2:300", Sent(ORDERS, 1, 11, place(2), before={"id": 1, "v": 10}))
    settings = {f"table_{ORDERS}_key": "v", "deletes": "hard", "batch_max_events": "1"}
    summary = log.ingest(spark, tmp_path / "lake", **settings)
    assert summary.batches == 2
    assert table(spark, tmp_path / "lake", ORDERS) == {1: 11}
    folder = tmp_path / "lake" / ORDERS
    (row,) = spark.read.format("delta").load(str(folder)).select("v", "_deleted").collect()
    assert (row["v"], row["_deleted"]) == (11, False)
    buried = spark.read.format("delta").load(f"{folder}{TOMBSTONES}").select("v").collect()
    assert [grave["v"] for grave in buried] == [10]


def test_a_new_record_key_under_the_same_declared_key_keeps_the_row(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = WrittenLog(tmp_path / "log", "postgresql")
    log.transaction("1:200", Sent(ORDERS, 1, 10, place(1), "c"))
    # Debezium sends a delete and a create at one place of the log.
    gone = Sent(ORDERS, 1, None, place(2), "d", before={"id": 1, "v": 10})
    log.transaction("2:300", gone, Sent(ORDERS, 2, 10, place(2), "c"))
    log.ingest(spark, tmp_path / "lake", **{f"table_{ORDERS}_key": "v"})
    assert table(spark, tmp_path / "lake", ORDERS) == {2: 10}
