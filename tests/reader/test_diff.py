"""What a transaction changed, as ``lake.diff`` shows it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from lakeingest.errors import UsageError
from lakeingest.reader import Lake, open_lake
from tests.apply.written import Sent, WrittenLog, change
from tests.reader.small_lake import LINES, NOTES, SECOND, SmallLake


@pytest.fixture
def lake(spark: SparkSession, small_lake: SmallLake) -> Lake:
    return open_lake(spark, small_lake.path)


def rows(frame: DataFrame) -> list[tuple[object, ...]]:
    assert frame.columns == ["op", "before", "after"]
    return sorted(
        (row["op"], *(tuple(row[side]) if row[side] else None for side in ("before", "after")))
        for row in frame.collect()
    )


def test_an_update_has_the_row_before_and_after_it(lake: Lake) -> None:
    diff = lake.diff(SECOND)
    assert (diff.batch, diff.tables()) == (2, [LINES])
    assert repr(diff) == "<Diff: batch 2, 1 tables>"
    assert rows(diff.table(LINES)) == [("update", (10, 1, "c"), (10, 1, "d"))]


def test_a_delete_has_no_row_after_it(lake: Lake) -> None:
    assert rows(lake.diff(3).table(LINES)) == [("delete", (9, 2, None), None)]


def test_the_first_publication_inserts_all_its_rows(lake: Lake) -> None:
    diff = lake.diff(1)
    assert diff.tables() == [LINES, NOTES]
    assert rows(diff.table(LINES)) == [
        ("insert", None, (9, 1, "")),
        ("insert", None, (9, 2, None)),
        ("insert", None, (10, 1, "c")),
    ]
    assert rows(diff.table(NOTES)) == [("insert", None, ("n",))]


def test_a_table_that_the_transaction_left_as_it_was_has_no_rows(lake: Lake) -> None:
    assert rows(lake.diff(SECOND).table(NOTES)) == []


def test_rows_of_the_snapshot_that_the_first_transaction_left_alone_are_no_updates(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = WrittenLog(tmp_path / "log", "postgresql")
    for id_, mark in ((1, "first"), (2, "last")):
        place = {"schema": "public", "table": "a", "lsn": 50, "snapshot": mark}
        log.put(Sent("public.a", id_, id_, place, "r"))
    log.transaction("1:200", change("a", 200))
    log.ingest(spark, tmp_path / "lake", commit_mode="per-transaction")
    lake = open_lake(spark, str(tmp_path / "lake"))
    [(op, before, after)] = rows(lake.diff("1:200").table("public.a"))
    assert (op, before) == ("update", (1, 1))
    assert isinstance(after, tuple)
    assert rows(lake.diff(2).table("public.a")) == [(op, before, after)]


def test_a_row_that_an_incremental_snapshot_sent_is_no_update(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = WrittenLog(tmp_path / "log", "postgresql")
    log.transaction("1:100", change("a", 100))
    place = {**change("a", 150).source, "snapshot": "incremental"}
    log.put(Sent("public.a", 1, 100, place, "r"))
    log.transaction("2:200", change("b", 200))
    log.ingest(spark, tmp_path / "lake", commit_mode="per-transaction")
    diff = open_lake(spark, str(tmp_path / "lake")).diff("2:200")
    assert [op for name in diff.tables() for op, *_ in rows(diff.table(name))] == ["insert"]


def test_times_that_differ_by_a_microsecond_are_different(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = WrittenLog(tmp_path / "log", "postgresql", declared=False)
    for number in (1, 2):
        sent = change("a", 100 * number)
        log.transaction(f"{number}:{number}00", replace(sent, v=1_700_000_000_000_000 + number))
    settings = {"table.public.a.schema": "id BIGINT, v TIMESTAMP_NTZ"}
    log.ingest(spark, tmp_path / "lake", commit_mode="per-transaction", **settings)
    [(op, before, after)] = rows(
        open_lake(spark, str(tmp_path / "lake")).diff("2:200").table("public.a")
    )
    assert isinstance(before, tuple)
    assert isinstance(after, tuple)
    assert (op, after[1] - before[1]) == ("update", timedelta(microseconds=1))


def test_a_row_that_was_removed_is_a_delete(spark: SparkSession, tmp_path: Path) -> None:
    log = WrittenLog(tmp_path / "log", "postgresql")
    log.transaction("1:100", change("a", 100))
    gone = change("a", 200)
    log.transaction("2:200", type(gone)(gone.collection, gone.id, None, gone.source))
    log.ingest(spark, tmp_path / "lake", commit_mode="per-transaction", deletes="hard")
    diff = open_lake(spark, str(tmp_path / "lake")).diff("2:200")
    [(op, before, after)] = rows(diff.table("public.a"))
    assert (op, after) == ("delete", None)
    assert isinstance(before, tuple)
    assert before[0] == 1


def test_rows_that_a_truncate_removed_are_deletes(spark: SparkSession, tmp_path: Path) -> None:
    log = WrittenLog(tmp_path / "log", "postgresql")
    log.transaction("1:100", change("a", 100))
    place = change("a", 200).source
    log.transaction("2:200", Sent("public.a", 0, None, place, "t"))
    log.ingest(spark, tmp_path / "lake", commit_mode="per-transaction", deletes="hard")
    diff = open_lake(spark, str(tmp_path / "lake")).diff("2:200")
    assert [op for op, *_ in rows(diff.table("public.a"))] == ["delete"]


def test_a_transaction_that_shares_its_publication_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = WrittenLog(tmp_path / "log", "postgresql")
    log.transaction("1:100", change("a", 100))
    log.transaction("2:200", change("a", 200))
    log.ingest(spark, tmp_path / "lake")
    lake = open_lake(spark, str(tmp_path / "lake"))
    assert lake.snapshot("tx:2").transactions == 2
    with pytest.raises(UsageError, match=r"holds 2 source transactions.*lake\.diff\(1\)"):
        lake.diff("2:200")
    assert len(lake.diff(1).table("public.a").collect()) == 1


def test_a_time_is_no_transaction(lake: Lake) -> None:
    with pytest.raises(UsageError, match="tx:2026-01-01"):
        lake.diff("2026-01-01")


def test_before_and_after_lead_from_one_publication_to_the_next(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = WrittenLog(tmp_path / "log", "postgresql")
    for number in range(1, 6):
        names = ("a", "b") if number % 3 else ("a",)
        log.transaction(f"{number}:{number}00", *(change(n, 100 * number) for n in names))
    log.ingest(spark, tmp_path / "lake", commit_mode="per-transaction")
    lake = open_lake(spark, str(tmp_path / "lake"))
    known: dict[tuple[int, str], set[str]] = {}
    for number in range(1, 6):
        snapshot = lake.snapshot(number)
        for name in snapshot.tables():
            known[number, name] = {
                json.dumps(row.asDict()) for row in snapshot.table(name).collect()
            }
    for number in range(2, 6):
        diff = lake.diff(f"{number}:{number}00")
        for name in diff.tables():
            found = diff.table(name).collect()
            before = {json.dumps(row["before"].asDict()) for row in found if row["before"]}
            after = {json.dumps(row["after"].asDict()) for row in found if row["after"]}
            then = known.get((number - 1, name), set())
            assert before <= then
            assert (then - before) | after == known[number, name]
