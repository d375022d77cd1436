"""Declared keys that change: what an update is taken apart into, in a real table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from lakeingest.folders import TOMBSTONES
from tests.apply.published import history, table
from tests.logs.written import Sent, WrittenLog, place_of
from tests.recordings.rust import queried

ORDERS = "public.orders"


def place(number: int) -> Mapping[str, object]:
    return place_of(ORDERS, 100 * number + 50, 100 * number, txId=number)


def test_updates_alone_that_change_a_declared_key_leave_tombstones_and_a_new_record_key_the_row(
    spark: SparkSession, log: WrittenLog, lake: Path
) -> None:
    log.transaction("1:200", Sent(ORDERS, 1, 10, place(1), "c"), Sent(ORDERS, 3, 30, place(1), "c"))
    log.transaction("2:300", Sent(ORDERS, 1, 11, place(2), before={"id": 1, "v": 10}))
    # A new record key under the same declared one: a delete and a create at one place of the log.
    gone = Sent(ORDERS, 3, None, place(3), "d", before={"id": 3, "v": 30})
    log.transaction("3:400", gone, Sent(ORDERS, 4, 30, place(3), "c"))
    settings = {f"table_{ORDERS}_key": "v", "deletes": "hard", "batch_max_events": "1"}
    assert log.ingest(spark, lake, **settings).batches == 3
    assert table(spark, lake, ORDERS) == {1: 11, 4: 30}
    folder = lake / ORDERS
    rows = queried(DeltaTable(str(folder)), 'SELECT "v", "_deleted" FROM t ORDER BY "v"')
    assert (rows["v"], rows["_deleted"]) == ([11, 30], [False, False])
    assert queried(DeltaTable(f"{folder}{TOMBSTONES}"), 'SELECT "v" FROM t')["v"] == [10]


@pytest.mark.soak
@pytest.mark.slow
def test_a_declared_key_that_is_a_part_of_the_record_key_is_one_row_whatever_the_rest_becomes(
    spark: SparkSession, log: WrittenLog, lake: Path
) -> None:
    """As the key of a partitioned table of PostgreSQL, which must hold the partition's column."""

    def sent(number: int, v: int | None, of: int, op: str) -> Sent:
        return Sent(ORDERS, 1, v, place(number), op, more_key={"v": of})

    log.transaction("1:200", sent(1, 10, 10, "c"))
    log.transaction("2:300", sent(2, None, 10, "d"), sent(2, 11, 11, "c"))
    log.transaction("3:400", sent(3, 11, 11, "u"))
    log.transaction("4:500", sent(4, None, 11, "d"), sent(4, 12, 12, "c"))
    log.ingest(spark, lake, **{f"table_{ORDERS}_key": "id", "commit_max_transactions": "1"})
    columns = queried(DeltaTable(str(lake / ORDERS)), 'SELECT "id", "v", "_deleted" FROM t')
    assert columns == {"id": [1], "v": [12], "_deleted": [False]}
    assert history(spark, lake) == {n: {ORDERS: {1: v}} for n, v in enumerate((10, 11, 11, 12), 1)}
