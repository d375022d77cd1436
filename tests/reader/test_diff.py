"""What a transaction changed, as ``lake.diff`` shows it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from functools import cache

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

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


def test_an_update_has_the_row_before_and_after_it_and_an_idle_table_has_no_rows(
    lake: Lake,
) -> None:
    diff = lake.diff(SECOND)
    assert (diff.batch, diff.tables()) == (2, [LINES])
    assert repr(diff) == "<Diff: batch 2, 1 tables>"
    assert rows(diff.table(LINES)) == [("update", (10, 1, "c"), (10, 1, "d"))]
    assert rows(diff.table(NOTES)) == []


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


def stamped(lsn: int, microseconds: int) -> Sent:
    return replace(change("times", lsn), v=1_700_000_000_000_000 + microseconds)


@pytest.fixture(scope="module")
def grown(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A snapshot, then a publication for each of three transactions, and one for two of them.

    The third deletes a row and truncates a table; neither keeps a row that is gone.
    """
    folder = tmp_path_factory.mktemp("grown")
    log = WrittenLog(folder / "log", "postgresql")
    # Where a transaction makes a table, it has a batch of its own.
    of_table = "last_in_data_collection"
    marks = (("a", 1, "first"), ("a", 2, of_table), ("b", 9, of_table), ("times", 9, "last"))
    for name, id_, mark in marks:
        place = {"schema": "public", "table": name, "lsn": 50, "snapshot": mark}
        log.put(Sent(f"public.{name}", id_, id_, place, "r"))
    log.transaction("1:200", change("a", 200), change("c", 200), stamped(200, 0))
    place = {**change("c", 350).source, "snapshot": "incremental"}
    log.put(Sent("public.c", 1, 200, place, "r"))
    log.transaction("2:300", change("b", 300), stamped(300, 1))
    gone = replace(change("a", 400), v=None, op=None)
    log.transaction("3:400", gone, Sent("public.c", 0, None, change("c", 400).source, "t"))
    settings = {"deletes": "hard", "table.public.times.schema": "id BIGINT, v TIMESTAMP_NTZ"}
    log.ingest(spark, folder / "lake", commit_mode="per-transaction", **settings)
    log.transaction("4:500", change("b", 500))
    log.transaction("5:600", change("b", 600))
    log.ingest(spark, folder / "lake", **settings)
    return open_lake(spark, str(folder / "lake"))


TOLD = range(2, 5)
"""Publications of one transaction each."""


@pytest.fixture(scope="module")
def told(grown: Lake) -> dict[tuple[int, str], list[Row]]:
    """What ``diff`` shows of each publication and table."""
    diffs = {number: grown.diff(number) for number in TOLD}
    return {
        (number, name): diff.table(name).collect()
        for number, diff in diffs.items()
        for name in diff.tables()
    }


def test_rows_of_the_snapshot_that_the_first_transaction_left_alone_are_no_updates(
    grown: Lake, told: dict[tuple[int, str], list[Row]]
) -> None:
    [(op, before, after)] = rows(grown.diff("1:200").table("public.a"))
    assert (op, before) == ("update", (1, 1))
    assert isinstance(after, tuple)
    assert told[2, "public.a"] == [(op, before, after)]


def test_a_row_that_an_incremental_snapshot_sent_is_no_update(
    told: dict[tuple[int, str], list[Row]],
) -> None:
    ops = {
        name: [row["op"] for row in rows] for (number, name), rows in told.items() if number == 3
    }
    assert ops == {"public.b": ["insert"], "public.c": [], "public.times": ["update"]}


def test_times_that_differ_by_a_microsecond_are_different(
    told: dict[tuple[int, str], list[Row]],
) -> None:
    [(op, before, after)] = told[3, "public.times"]
    assert (op, after["v"] - before["v"]) == ("update", timedelta(microseconds=1))


def test_a_row_that_was_removed_or_truncated_is_a_delete(
    told: dict[tuple[int, str], list[Row]],
) -> None:
    [(op, before, after)] = told[4, "public.a"]
    assert (op, before["id"], after) == ("delete", 1, None)
    assert [row["op"] for row in told[4, "public.c"]] == ["delete"]


def test_before_and_after_lead_from_one_publication_to_the_next(
    grown: Lake, told: dict[tuple[int, str], list[Row]]
) -> None:
    snapshots = {snapshot.batch: snapshot for snapshot in grown.snapshots()}

    @cache
    def known(name: str, version: int) -> set[str]:
        shown = next(s for s in snapshots.values() if s.versions.get(name) == version)
        return {json.dumps(row.asDict(), default=str) for row in shown.table(name).collect()}

    for (number, name), found in told.items():
        before, after = (
            {json.dumps(row[side].asDict(), default=str) for row in found if row[side]}
            for side in ("before", "after")
        )
        earlier = snapshots[number - 1].versions.get(name)
        then = set() if earlier is None else known(name, earlier)
        assert before <= then
        assert (then - before) | after == known(name, snapshots[number].versions[name])


def test_a_transaction_that_shares_its_publication_is_refused(grown: Lake) -> None:
    assert grown.snapshot("tx:5").transactions == 2
    with pytest.raises(UsageError, match=r"holds 2 source transactions.*lake\.diff\(5\)"):
        grown.diff("5:600")
    assert len(grown.diff(5).table("public.b").collect()) == 1


def test_a_time_is_no_transaction(lake: Lake) -> None:
    with pytest.raises(UsageError, match="tx:2026-01-01"):
        lake.diff("2026-01-01")
