"""A MySQL server that compresses its transactions: in order, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.errors import DataError
from tests.apply.written import Sent, WrittenLog, table
from tests.forms import further

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
        log.transaction(
            gtid,
            *(
                Sent(
                    TABLE,
                    id_,
                    v,
                    {**place, "pos": 300 * number, "row": row, "version": version},
                    op,
                )
                for id_, v, op, row in rows
            ),
        )
    return log


@pytest.mark.soak
def test_statements_of_one_compressed_transaction_leave_what_the_last_one_wrote(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = log_of(tmp_path, "3.7.0.Final", COMPRESSED)
    log.ingest(spark, tmp_path / "lake")
    assert table(spark, tmp_path / "lake", TABLE) == {1: 6, 2: 7, 3: 4, 8: 8}


@pytest.mark.parametrize(
    "number",
    [0, *(further(n) for n in range(1, len(COMPRESSED)))],
)
def test_a_debezium_that_does_not_tell_the_order_for_certain_stops_the_run(
    spark: SparkSession, tmp_path: Path, number: int
) -> None:
    log = log_of(tmp_path, "3.6.1.Final", [COMPRESSED[number]])
    with pytest.raises(DataError, match="binlog_transaction_compression=OFF"):
        log.ingest(spark, tmp_path / "lake")


@pytest.mark.soak
def test_a_key_change_without_headers_and_many_rows_are_no_sign_of_compression(
    spark: SparkSession, tmp_path: Path
) -> None:
    plain: list[list[Told]] = [
        [(1, 1, "c", 0), (2, 2, "c", 1), (3, 3, "c", 2)],
        [(3, None, "d", 0), (4, 3, "c", 0), (2, None, "d", 1), (3, 2, "c", 1)],
        [(1, None, "d", 0), (4, None, "d", 1)],
    ]
    log = log_of(tmp_path, "3.4.1.Final", plain)
    log.ingest(spark, tmp_path / "lake")
    assert table(spark, tmp_path / "lake", TABLE) == {3: 2}
