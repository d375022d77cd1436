"""Another writer commits to a table between two of the versions that a batch makes at once."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import deltalake
import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from lakeingest.apply import attempts
from lakeingest.apply.run import run_pipeline
from lakeingest.engine.delta import local_disk
from lakeingest.engine.delta.log_writer import VersionTakenError
from lakeingest.errors import DataError, FencedError
from lakeingest.reader import open_lake
from lakeingest.sink.delta import maintenance
from lakeingest.sink.delta.commit import DeltaLakeTable
from tests.apply.published import history, table
from tests.apply.test_rows_without_transaction import UNAVAILABLE
from tests.faults.before_commit import before_each_version
from tests.faults.lost_publication import CrashError
from tests.logs.written import WrittenLog, change, snapshot_row

pytestmark = pytest.mark.slow

TRANSACTIONS = 4
EACH = {"commit_mode": "per-transaction"}


def write(log: WrittenLog, *numbers: int) -> None:
    """Write transactions that each change the one row; the first one makes the table."""
    for number in numbers:
        log.transaction(f"{number}:{number}00", change("a", 100 * number))


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return tmp_path / "lake"


@pytest.fixture
def log(tmp_path: Path) -> WrittenLog:
    """One row, which each transaction changes; the table is made by the first one."""
    written = WrittenLog(tmp_path / "log", "postgresql")
    write(written, *range(1, TRANSACTIONS + 1))
    return written


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rival acts while a run has the table's lock, and a run that lost tries again."""
    monkeypatch.setattr(local_disk, "PATIENCE_SECONDS", 0.1)
    monkeypatch.setattr(attempts, "PAUSES_SECONDS", (0.0,))


@contextmanager
def rival(monkeypatch: pytest.MonkeyPatch, *acts: Callable[[], object]) -> Iterator[None]:
    """Let a rival act once after the second version of a batch of several, again after the 4th."""
    left = dict(zip((2, 4), acts, strict=False))

    def act_once(_table: str, commits: int) -> None:
        left.pop(commits, Mock())()

    with before_each_version(monkeypatch, act_once):
        yield
    assert left == {}


def values(spark: SparkSession, lake: Path) -> list[int]:
    """Return the value of row 1 in each publication."""
    return [shown["public.a"][1] for shown in history(spark, lake).values()]


def ids(spark: SparkSession, lake: Path) -> list[int]:
    """Return the keys of the newest publication."""
    return sorted(table(spark, lake, "public.a"))


EXPECTED = [100 * number for number in range(1, TRANSACTIONS + 1)]


def test_rows_of_an_incremental_snapshot_are_not_lost_where_their_table_is_ahead(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, log = tmp_path / "lake", WrittenLog(tmp_path / "log", "postgresql")
    settings = {**EACH, "table.public.a.schema": "id BIGINT, v STRING"}
    for number in range(1, TRANSACTIONS + 2):
        row = replace(change("a", 100 * number), v=str(number))
        log.transaction(f"{number}:{number}00", row)
        if number in (2, 4):
            # The table has the file of row 1 and more rows, so that a whole file could be lost.
            log.put(snapshot_row("a", 70 + number, "long", 100 * number))
    # It keeps the value that such a row brought in the same batch.
    log.transaction("6:600", replace(change("a", 600), id=74, v=UNAVAILABLE))

    with rival(monkeypatch, Mock(side_effect=CrashError)), pytest.raises(CrashError):
        log.ingest(spark, lake, **settings)
    log.ingest(spark, lake, **settings)
    since = {72: 3, 74: 5}
    assert [shown["public.a"] for shown in history(spark, lake).values()] == [
        {1: str(min(n, 5)), **{id_: "long" for id_, first in since.items() if n >= first}}
        for n in range(1, 7)
    ]


def append(table: Path) -> None:
    at = deltalake.DeltaTable(str(table))
    query = "SELECT * REPLACE (CAST(77 AS BIGINT) AS id) FROM t"
    row = deltalake.QueryBuilder().register("t", at).execute(query).read_all()
    deltalake.write_deltalake(at, row, mode="append")


def test_another_writers_append_may_pass_or_stop_a_run_and_after_its_merge_the_rest_is_planned_anew(
    spark: SparkSession, log: WrittenLog, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def merge() -> None:
        target = DeltaTable.forPath(spark, str(lake / "public.a")).alias("t")
        same = target.toDF().alias("s")
        target.merge(same, "t.id = s.id").whenMatchedUpdate(set={"v": "s.v"}).execute()

    write(log, 5, 6, 7)
    with rival(monkeypatch, lambda: append(lake / "public.a"), merge):
        summary = log.ingest(spark, lake, **EACH, foreign_changes="accept")
    # Not after the append: then the merge would not have come.
    assert len([text for text in summary.warnings if "Tried again" in text]) == 1
    assert values(spark, lake) == [*EXPECTED, 500, 600, 700]
    assert ids(spark, lake) == [1, 77]
    write(log, 8, 9, 10)
    with (
        rival(monkeypatch, lambda: append(lake / "public.a")),
        pytest.raises(DataError, match="public.a"),
    ):
        log.ingest(spark, lake, **EACH)


@pytest.mark.soak
def test_an_entry_that_another_writer_replaces_is_noticed_before_the_next_one(
    spark: SparkSession, log: WrittenLog, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, table = lake.parent / "copy", lake / "public.a"

    def replace_newest() -> None:
        """Commit as Delta's own writers do on a local disk, where two of them meet."""
        newest = max((table / "_delta_log").glob("*.json"))
        shutil.copytree(table, copy)
        (copy / "_delta_log" / newest.name).unlink()
        append(copy)
        for file in copy.glob("*.parquet"):
            shutil.copy(file, table)
        (copy / "_delta_log" / newest.name).replace(newest)

    with rival(monkeypatch, replace_newest):
        summary = log.ingest(spark, lake, **EACH, foreign_changes="accept")
    assert [text for text in summary.warnings if "Tried again" in text]
    assert values(spark, lake) == EXPECTED
    assert ids(spark, lake) == [1, 77]


@pytest.mark.soak
def test_conflicts_end_no_run_whose_batches_get_on(
    spark: SparkSession, log: WrittenLog, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    met = set[int]()

    def conflict_once(_table: str, _commits: int) -> None:
        head = open_lake(spark, str(lake)).snapshot().batch
        if head not in met:
            met.add(head)
            raise VersionTakenError

    with before_each_version(monkeypatch, conflict_once):
        log.ingest(spark, lake, **EACH, commit_max_transactions="1")
    assert len(met) > 2
    assert values(spark, lake) == EXPECTED


@pytest.mark.soak
def test_a_second_run_takes_the_rest_over_and_the_first_one_ends(
    spark: SparkSession, log: WrittenLog, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = log.configured(lake, **EACH)
    with rival(monkeypatch, lambda: run_pipeline(spark, config)), pytest.raises(FencedError):
        run_pipeline(spark, config)
    assert run_pipeline(spark, config).nothing_new
    assert values(spark, lake) == EXPECTED


@pytest.mark.soak
def test_a_fenced_run_does_not_write_the_files_of_a_crowded_table_better(
    spark: SparkSession, log: WrittenLog, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = log.configured(lake, **EACH)
    calls: list[str] = []

    def is_crowded(table: DeltaLakeTable) -> bool:
        calls.append(table.path)
        if len(calls) == 1:
            run_pipeline(spark, config)
        return len(calls) == 1

    monkeypatch.setattr(maintenance, "is_crowded", is_crowded)
    with pytest.raises(FencedError):
        run_pipeline(spark, config)
    history = DeltaTable.forPath(spark, str(lake / "public.a")).history()
    assert history.where("operation = 'OPTIMIZE'").isEmpty()
    assert values(spark, lake) == EXPECTED


@pytest.mark.soak
def test_both_rows_of_a_key_that_another_writer_appended_again_are_deleted(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake, log = tmp_path / "lake", WrittenLog(tmp_path / "log", "postgresql")
    log.transaction("1:100", change("a", 100), replace(change("a", 101), id=2))
    log.ingest(spark, lake, **EACH)
    table = str(lake / "public.a")
    again = spark.read.format("delta").load(table).where("id = 1")
    again.write.format("delta").mode("append").save(table)
    log.transaction("2:200", change("a", 200))
    log.transaction("3:300", replace(change("a", 300), v=None, op="d"))
    log.ingest(spark, lake, **EACH, foreign_changes="accept", deletes="hard")
    assert ids(spark, lake) == [2]
