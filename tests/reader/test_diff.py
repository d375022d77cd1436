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


STAMP = 1_700_000_000_000_000
"""Microseconds; a transaction adds its number."""


@pytest.fixture(scope="module")
def grown(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A snapshot, then one publication for each of five transactions."""
    folder = tmp_path_factory.mktemp("grown")
    log = WrittenLog(folder / "log", "postgresql")
    for id_, mark in ((1, "first"), (2, "last")):
        place = {"schema": "public", "table": "a", "lsn": 50, "snapshot": mark}
        log.put(Sent("public.a", id_, id_, place, "r"))
    log.transaction("1:200", change("a", 200))
    for number in (2, 3):
        sent = change("times", 100 * number + 100)
        log.transaction(f"{number}:{number + 1}00", replace(sent, v=STAMP + number))
    log.transaction("4:500", change("a", 500), change("c", 500))
    place = {**change("c", 550).source, "snapshot": "incremental"}
    log.put(Sent("public.c", 1, 500, place, "r"))
    log.transaction("5:600", change("b", 600))
    settings = {"table.public.times.schema": "id BIGINT, v TIMESTAMP_NTZ"}
    log.ingest(spark, folder / "lake", commit_mode="per-transaction", **settings)
    return open_lake(spark, str(folder / "lake"))


def test_rows_of_the_snapshot_that_the_first_transaction_left_alone_are_no_updates(
    grown: Lake,
) -> None:
    [(op, before, after)] = rows(grown.diff("1:200").table("public.a"))
    assert (op, before) == ("update", (1, 1))
    assert isinstance(after, tuple)
    assert rows(grown.diff(2).table("public.a")) == [(op, before, after)]


def test_a_row_that_an_incremental_snapshot_sent_is_no_update(grown: Lake) -> None:
    diff = grown.diff("5:600")
    assert [op for name in diff.tables() for op, *_ in rows(diff.table(name))] == ["insert"]


def test_times_that_differ_by_a_microsecond_are_different(grown: Lake) -> None:
    [(op, before, after)] = rows(grown.diff("3:400").table("public.times"))
    assert isinstance(before, tuple)
    assert isinstance(after, tuple)
    assert (op, after[1] - before[1]) == ("update", timedelta(microseconds=1))


def test_before_and_after_lead_from_one_publication_to_the_next(grown: Lake) -> None:
    known: dict[tuple[int, str], set[str]] = {}
    for number in range(1, 7):
        snapshot = grown.snapshot(number)
        for name in snapshot.tables():
            known[number, name] = {
                json.dumps(row.asDict(), default=str) for row in snapshot.table(name).collect()
            }
    for number in range(2, 7):
        diff = grown.diff(number)
        for name in diff.tables():
            found = diff.table(name).collect()
            before, after = (
                {json.dumps(row[side].asDict(), default=str) for row in found if row[side]}
                for side in ("before", "after")
            )
            then = known.get((number - 1, name), set())
            assert before <= then
            assert (then - before) | after == known[number, name]


@pytest.fixture(scope="module")
def hard(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A row that was deleted, and one that a truncate removed; neither is kept."""
    folder = tmp_path_factory.mktemp("hard")
    log = WrittenLog(folder / "log", "postgresql")
    log.transaction("1:100", change("a", 100))
    log.transaction("2:200", replace(change("a", 200), v=None, op=None))
    log.transaction("3:300", change("b", 300))
    log.transaction("4:400", Sent("public.b", 0, None, change("b", 400).source, "t"))
    log.ingest(spark, folder / "lake", commit_mode="per-transaction", deletes="hard")
    return open_lake(spark, str(folder / "lake"))


def test_a_row_that_was_removed_is_a_delete(hard: Lake) -> None:
    [(op, before, after)] = rows(hard.diff("2:200").table("public.a"))
    assert (op, after) == ("delete", None)
    assert isinstance(before, tuple)
    assert before[0] == 1


def test_rows_that_a_truncate_removed_are_deletes(hard: Lake) -> None:
    assert [op for op, *_ in rows(hard.diff("4:400").table("public.b"))] == ["delete"]


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
