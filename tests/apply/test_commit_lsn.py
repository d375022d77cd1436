"""SQL Server and Db2 from log to lake: commit order by LSN, one database."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.errors import DataError
from tests.apply.published import table
from tests.logs.written import Sent, WrittenLog

pytestmark = pytest.mark.slow


def sqlserver(
    commit: str, change: str | None, serial: int | None = 1, db: str = "shop"
) -> dict[str, object]:
    place = {"db": db, "schema": "dbo", "table": "a", "commit_lsn": commit}
    return {**place, "change_lsn": change, "event_serial_no": serial}


def lsn(block: int, slot: int = 1) -> str:
    return f"00000027:{block:08x}:{slot:04x}"


def sent(block: int, slot: int, id_: int, v: int | None, op: str, serial: int = 1) -> Sent:
    return Sent("shop.dbo.a", id_, v, sqlserver(lsn(block), lsn(block - 1, slot), serial), op)


@pytest.fixture
def log(tmp_path: Path) -> WrittenLog:
    """A snapshot, then transactions whose LSNs gain a digit; one replaces a row of the same key."""
    made = WrittenLog(tmp_path / "log", "sqlserver")
    for id_, mark in ((1, "first"), (2, "true"), (3, "last")):
        place = {**sqlserver(lsn(0xF), None, None), "snapshot": mark}
        made.put(Sent("shop.dbo.a", id_, 10 * id_, place, "r"))
    made.transaction(lsn(0xFF), sent(0xFF, 1, 1, 11, "u"), sent(0xFF, 2, 2, None, "d"))
    made.transaction(lsn(0x100), sent(0x100, 9, 1, None, "d", 1), sent(0x100, 9, 1, 12, "c", 2))
    made.transaction(lsn(0x101), sent(0x101, 1, 3, 31, "u"), sent(0x101, 2, 3, 32, "u"))
    return made


WHOLE = {1: 12, 3: 32}


def test_a_second_database_of_one_connector_is_refused_whenever_it_comes(
    spark: SparkSession, log: WrittenLog, lake: Path
) -> None:
    log.ingest(spark, lake)
    place = sqlserver(lsn(0x300), lsn(0x2FF), db="other")
    log.transaction(lsn(0x300), Sent("other.dbo.a", 1, 1, place, "c"))
    with pytest.raises(DataError, match="2 databases"):
        log.ingest(spark, lake)
    assert table(spark, lake, "shop.dbo.a") == WHOLE


@pytest.mark.soak
def test_db2_ends_as_its_transactions_say(spark: SparkSession, tmp_path: Path) -> None:
    log, lake = WrittenLog(tmp_path / "log", "db2"), tmp_path / "lake"

    def place(commit: int, change: int) -> dict[str, object]:
        change_lsn = f"{change:08x}:" + "0" * 8 + ":" + "0" * 16
        lsns = {"commit_lsn": f"00000000:00000000:{commit:016x}", "change_lsn": change_lsn}
        return {"schema": "INST", "table": "A", **lsns}

    for commit in (0xFFFF_FFFF, 0x1_0000_0000):
        rows = (Sent("INST.A", 1, commit + n, place(commit, n), "u") for n in (9, 10))
        log.transaction(f"00000000:00000000:{commit:016x}", *rows)
    log.ingest(spark, lake)
    assert table(spark, lake, "INST.A") == {1: 0x1_0000_0000 + 10}
