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
from tests.logs.written import Sent, WrittenLog, change
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
    """A snapshot, then a publication for each of two transactions, and one for two of them.

    The second deletes a row and truncates a table; neither keeps a row that is gone.
    """
    folder = tmp_path_factory.mktemp("grown")
    log = WrittenLog(folder / "log", "postgresql")
    of_table = "last_in_data_collection"
    marks = (("a", 1, "first"), ("a", 2, of_table), ("b", 9, of_table), ("times", 9, "last"))
    for name, id_, mark in marks:
        place = {"schema": "public", "table": name, "lsn": 50, "snapshot": mark}
        log.put(Sent(f"public.{name}", id_, id_, place, "r"))
    log.transaction("1:200", change("a", 200), change("c", 200), stamped(200, 0))
    place = {**change("c", 350).source, "snapshot": "incremental"}
    log.put(Sent("public.c", 1, 200, place, "r"))
    gone = replace(change("a", 300), v=None, op=None)
    truncate = Sent("public.b", 0, None, change("b", 300).source, "t")
    log.transaction("2:300", gone, truncate, stamped(300, 1))
    for number in (3, 4):
        lsn = 100 * number + 100
        log.transaction(f"{number}:{lsn}", change("b", lsn))
    settings = {"deletes": "hard", "table.public.times.schema": "id BIGINT, v TIMESTAMP_NTZ"}
    # The first two transactions have three rows each, the others one.
    log.ingest(spark, folder / "lake", batch_max_events="3", **settings)
    return open_lake(spark, str(folder / "lake"))


TOLD = (2, 3)
"""Publications of one transaction each."""


@pytest.fixture(scope="module")
def diffs(grown: Lake) -> dict[tuple[int, str], list[Row]]:
    """What ``diff`` shows of each publication and table."""
    return {
        (number, name): diff.table(name).collect()
        for number, diff in {number: grown.diff(number) for number in TOLD}.items()
        for name in diff.tables()
    }


def test_rows_of_the_snapshot_that_the_first_transaction_left_alone_are_no_updates(
    grown: Lake, diffs: dict[tuple[int, str], list[Row]]
) -> None:
    [(op, before, after)] = rows(grown.diff("1:200").table("public.a"))
    assert (op, before) == ("update", (1, 1))
    assert isinstance(after, tuple)
    assert diffs[2, "public.a"] == [(op, before, after)]


def test_a_row_that_an_incremental_snapshot_sent_is_no_update(
    diffs: dict[tuple[int, str], list[Row]],
) -> None:
    ops: dict[int, dict[str, list[str]]] = {number: {} for number in TOLD}
    for (number, name), changes in diffs.items():
        ops[number][name.removeprefix("public.")] = [row["op"] for row in changes]
    assert ops[2] == {"a": ["update"], "c": ["insert"], "times": ["insert"]}
    assert ops[3] == {"a": ["delete"], "b": ["delete"], "c": [], "times": ["update"]}


def test_times_that_differ_by_a_microsecond_are_different(
    diffs: dict[tuple[int, str], list[Row]],
) -> None:
    [(op, before, after)] = diffs[3, "public.times"]
    assert (op, after["v"] - before["v"]) == ("update", timedelta(microseconds=1))


def test_a_row_that_was_removed_or_truncated_is_a_delete(
    diffs: dict[tuple[int, str], list[Row]],
) -> None:
    for name, id_ in (("public.a", 1), ("public.b", 9)):
        [(op, before, after)] = diffs[3, name]
        assert (op, before["id"], after) == ("delete", id_, None)


def test_before_and_after_lead_from_one_publication_to_the_next(
    grown: Lake, diffs: dict[tuple[int, str], list[Row]]
) -> None:
    snapshots = {snapshot.batch: snapshot for snapshot in grown.snapshots()}

    @cache
    def table_at(name: str, version: int) -> set[str]:
        shown = next(s for s in snapshots.values() if s.versions.get(name) == version)
        return {json.dumps(row.asDict(), default=str) for row in shown.table(name).collect()}

    for (number, name), changes in diffs.items():
        before, after = (
            {json.dumps(row[side].asDict(), default=str) for row in changes if row[side]}
            for side in ("before", "after")
        )
        earlier = snapshots[number - 1].versions.get(name)
        then = set() if earlier is None else table_at(name, earlier)
        assert before <= then
        assert (then - before) | after == table_at(name, snapshots[number].versions[name])


def test_a_transaction_that_shares_its_publication_is_refused(grown: Lake) -> None:
    assert grown.snapshot("tx:4").transactions == 2
    with pytest.raises(UsageError, match=r"holds 2 source transactions.*lake\.diff\(4\)"):
        grown.diff("4:500")
    assert len(grown.diff(4).table("public.b").collect()) == 1


def test_a_time_is_no_transaction(lake: Lake) -> None:
    with pytest.raises(UsageError, match="tx:2026-01-01"):
        lake.diff("2026-01-01")
