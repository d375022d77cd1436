"""Oracle from log to lake: ENDs without an SCN stand where their rows are."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

import lakeingest
from lakeingest.errors import DataError, UsageError
from lakeingest.folders import LEDGER_FOLDER
from tests.apply.published import table
from tests.logs.written import Sent, WrittenLog
from tests.recordings.rust import RustLake, queried

pytestmark = pytest.mark.slow

TABLE, OTHER = "SHOP.A", "SHOP.B"
PDB = "ORCLPDB1"
COUNTS = "SELECT events_by_table FROM t WHERE kind = 'transaction'"


def row(scn: int, seq: int, id_: int, v: int | None, name: str = "A") -> Sent:
    place = {"db": PDB, "schema": "SHOP", "table": name, "scn": "1", "commit_scn": str(scn)}
    return Sent(f"SHOP.{name}", id_, v, {**place, "txSeq": seq, "redo_thread": 1})


def counted(**counts: int) -> dict[str, int]:
    return {f"{PDB}.SHOP.{name}": count for name, count in counts.items()}


def commit(log: WrittenLog, tx: str, *rows: Sent) -> None:
    names = [sent.collection.removeprefix("SHOP.") for sent in rows]
    log.begin(tx)
    log.rows(tx, rows)
    log.end(tx, counted(**{name: names.count(name) for name in sorted({*names})}))


@pytest.fixture
def log(tmp_path: Path) -> WrittenLog:
    """A snapshot, and transactions whose ids are in no order and whose SCNs gain a digit."""
    made = WrittenLog(tmp_path / "log", "oracle")
    for id_, mark in ((1, "first"), (2, "last")):
        place = {"db": PDB, "schema": "SHOP", "table": "A", "scn": "5000", "snapshot": mark}
        made.put(Sent(TABLE, id_, id_, place, "r"))
    commit(made, "09", row(999, 1, 1, 10), row(999, 9, 2, 20), row(999, 10, 2, 21))
    commit(made, "01", row(1_000, 1, 1, 11), row(1_000, 2, 3, 30, "B"))
    return made


def tables(spark: SparkSession, lake: Path) -> tuple[dict[int, int], dict[int, int]]:
    return table(spark, lake, TABLE), table(spark, lake, OTHER)


def test_transactions_of_one_scn_are_whole_an_end_that_comes_again_is_passed_and_a_new_one_waits(
    spark: SparkSession, log: WrittenLog, lake: Path
) -> None:
    """A table may be retired then, but not taken up again."""
    commit(log, "08", row(1_001, 1, 1, 12))
    # The rows of the second one are there in part, its END is not.
    log.begin("07")
    log.rows("07", [row(1_001, 1, 2, 22)])
    log.ingest(spark, lake)
    assert tables(spark, lake) == ({1: 12, 2: 21}, {3: 30})
    event_counts = queried(DeltaTable(f"{lake}/{LEDGER_FOLDER}"), COUNTS)["events_by_table"]
    assert {name for counts in event_counts for name in dict(counts)} == {TABLE, OTHER}
    log.rows("07", [row(1_001, 2, 3, 31, "B")])
    log.end("07", counted(A=1, B=1))
    log.ingest(spark, lake)
    # The rows of an END come again, and in a later run the END.
    log.begin("09")
    log.rows("09", [row(999, 1, 1, 10), row(999, 9, 2, 20), row(999, 10, 2, 21)])
    log.ingest(spark, lake)
    log.end("09", counted(A=3))
    commit(log, "01", row(1_000, 1, 1, 11), row(1_000, 2, 3, 30, "B"))
    log.begin("05")
    log.end("05", counted(A=1))
    commit(log, "04", row(1_003, 1, 2, 23))
    with pytest.raises(DataError, match=r"END counts 1 rows of table 'SHOP\.A', 0 are there"):
        log.ingest(spark, lake)
    assert tables(spark, lake) == ({1: 12, 2: 22}, {3: 31})
    log.rows("05", [row(1_002, 1, 6, 60)])
    lakeingest.retire(spark, log.configured(lake), OTHER)
    # A transaction of tables that are not read holds nothing back.
    log.transaction("0a")
    commit(log, "0b", row(1_005, 1, 5, 50, "B"))
    commit(log, "02", row(1_006, 1, 1, 13), row(1_006, 2, 4, 40, "B"))
    log.ingest(spark, lake, source_topics=f"w.{TABLE}")
    publications = RustLake(lake, "SHOP").publications()
    assert sum(one.transactions for one in publications) == 9
    # The rows that it missed may stand where the last transaction does.
    with pytest.raises(UsageError, match="does not say where a transaction stands"):
        lakeingest.retire(spark, log.configured(lake), OTHER, undo=True)
    assert table(spark, lake, TABLE) == {1: 13, 2: 23, 6: 60}
    commit(log, "0d", row(1_500, 1, 1, 15))
    commit(log, "0e", row(1_400, 1, 1, 14))
    with pytest.raises(DataError, match="another order than the commit SCNs"):
        log.ingest(spark, lake)


@pytest.mark.soak
def test_what_a_restarted_connector_sends_again_changes_nothing(
    spark: SparkSession, log: WrittenLog, lake: Path
) -> None:
    log.ingest(spark, lake)
    commit(log, "09", row(999, 1, 1, 10), row(999, 9, 2, 20), row(999, 10, 2, 21))
    commit(log, "01", row(1_000, 1, 1, 11), row(1_000, 2, 3, 30, "B"))
    commit(log, "02", row(1_003, 1, 3, None, "B"))
    # Nor do the rows alone of one that was applied.
    log.rows("03", [row(998, 9, 2, 19)])
    commit(log, "04", row(1_004, 1, 4, 40))
    log.ingest(spark, lake)
    assert tables(spark, lake) == ({1: 11, 2: 21, 4: 40}, {})
    # A new one comes before the last one that was applied comes again, and then once more.
    new = ("05", row(1_005, 1, 5, 50))
    commit(log, *new)
    commit(log, "04", row(1_004, 1, 4, 40))
    commit(log, *new)
    log.ingest(spark, lake)
    assert tables(spark, lake) == ({1: 11, 2: 21, 4: 40, 5: 50}, {})
