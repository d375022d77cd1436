"""A MySQL server that compresses its transactions: in order, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.errors import DataError
from tests.forms import further
from tests.logs.written import Sent, WrittenLog

pytestmark = pytest.mark.slow

UUID = "0e4d5dcd-a33b-11ea-80f1-02010a22a99e"
TABLE = "shop.a"

Told = tuple[int, int | None, str, int]
"""Key, value, what was done, row in its rows event."""

COMPRESSED: list[list[Told]] = [
    # An insert of three, an update of the last one, then of the first one twice.
    [
        (1, 1, "c", 0),
        (2, 2, "c", 1),
        (3, 3, "c", 2),
        (3, 4, "u", 0),
        (1, 5, "u", 0),
        (1, 6, "u", 0),
    ],
    # Deleted and inserted again; inserted and deleted again.
    [(2, None, "d", 0), (2, 7, "c", 0), (8, 8, "c", 0), (9, 9, "c", 1), (9, None, "d", 0)],
]


def log_of(folder: Path, version: str, transactions: list[list[Told]]) -> WrittenLog:
    log = WrittenLog(folder / "log", "mysql", run="first")
    for number, rows in enumerate(transactions, 1):
        gtid = f"{UUID}:{number}"
        place = {"db": "shop", "table": "a", "gtid": gtid, "file": "mysql-bin.000001"}
        of_all = {**place, "pos": 300 * number, "version": version}
        sent = (Sent(TABLE, id_, v, {**of_all, "row": row}, op) for id_, v, op, row in rows)
        log.transaction(gtid, *sent)
    return log


@pytest.mark.parametrize("number", [0, *(further(n) for n in range(1, len(COMPRESSED)))])
def test_a_debezium_that_does_not_tell_the_order_for_certain_stops_the_run(
    spark: SparkSession, tmp_path: Path, number: int
) -> None:
    with pytest.raises(DataError, match="binlog_transaction_compression=OFF"):
        log_of(tmp_path, "3.6.1.Final", [COMPRESSED[number]]).ingest(spark, tmp_path / "lake")
