"""What the log of a table tells, also when another process writes it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.engine.delta.log import commits, is_delta_table, newest_snapshot
from lakeingest.engine.delta.transaction import DeltaTransaction


def test_a_table_that_another_process_made_after_the_first_look_is_seen(
    spark: SparkSession, tmp_path: Path
) -> None:
    made, looked_at = tmp_path / "made", tmp_path / "lake"
    (looked_at / "_delta_log").mkdir(parents=True)
    assert not is_delta_table(spark, str(looked_at))
    # This session knows nothing of the table at its new place, as with a writer of its own.
    spark.range(2).write.format("delta").save(str(made))
    (looked_at / "_delta_log").rmdir()
    looked_at.rmdir()
    made.rename(looked_at)
    assert is_delta_table(spark, str(looked_at))


def test_a_folder_without_a_log_is_no_table(spark: SparkSession, tmp_path: Path) -> None:
    assert not is_delta_table(spark, str(tmp_path))
    assert not is_delta_table(spark, str(tmp_path / "nothing"))


def test_commits_come_newest_first_with_what_their_writers_left(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "table")
    for text in ("one", "two"):
        spark.range(1).write.format("delta").mode("append").option("userMetadata", text).save(path)
    assert [(c.version, c.metadata) for c in commits(spark, path)] == [(1, "two"), (0, "one")]


def table_of(spark: SparkSession, path: Path, commits: int) -> Path:
    for _ in range(commits):
        spark.range(2).write.format("delta").mode("append").save(str(path))
    return path


def changed_by_another_process(path: Path, replacement: Path) -> None:
    """Exchange a table's files; this session has seen neither the change nor the new place."""
    shutil.rmtree(path)
    replacement.rename(path)


def test_the_newest_version_is_known_without_a_list_of_the_log(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = table_of(spark, tmp_path / "table", 2)
    # Delta refuses a list with a gap.
    (table / "_delta_log" / f"{3:020d}.json").write_text("{}", "utf-8")
    assert newest_snapshot(spark, str(table)).version() == 1


def test_a_commit_of_another_process_is_the_newest_one(spark: SparkSession, tmp_path: Path) -> None:
    table = table_of(spark, tmp_path / "table", 1)
    other = tmp_path / "other"
    shutil.copytree(table, other)
    changed_by_another_process(table, table_of(spark, other, 1))
    assert newest_snapshot(spark, str(table)).version() == 1
    assert spark.read.format("delta").load(str(table)).count() == 4


def test_a_table_made_anew_with_as_many_commits_is_not_taken_for_the_old_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = table_of(spark, tmp_path / "table", 2)
    old = newest_snapshot(spark, str(table)).metadata().id()
    changed_by_another_process(table, table_of(spark, tmp_path / "anew", 2))
    newest = newest_snapshot(spark, str(table))
    assert newest.version() == 1
    assert newest.metadata().id() != old


def test_a_table_that_is_gone_has_no_newest_version(spark: SparkSession, tmp_path: Path) -> None:
    table = table_of(spark, tmp_path / "table", 1)
    shutil.rmtree(table)
    assert newest_snapshot(spark, str(table)).version() == -1
    assert not is_delta_table(spark, str(table))


def test_a_snapshot_of_many_commits_begins_again_at_the_newest_checkpoint(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakeingest.engine.delta.log._MOST_COMMITS", 2)
    table = table_of(spark, tmp_path / "table", 1)
    spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('delta.checkpointInterval' = '2')")
    for token in range(1, 5):
        DeltaTransaction(spark, str(table), "writer").commit(token, "")
        assert newest_snapshot(spark, str(table)).logSegment().deltas().size() <= 2


def test_a_log_of_many_commits_is_listed_once_for_each_new_version(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakeingest.engine.delta.log._MOST_COMMITS", 1)
    table = table_of(spark, tmp_path / "table", 3)
    DeltaTransaction(spark, str(table), "writer").commit(1, "")
    assert newest_snapshot(spark, str(table)).version() == 3
    gap = table / "_delta_log" / f"{5:020d}.json"
    # Delta refuses a list with a gap.
    gap.write_text("{}", "utf-8")
    assert newest_snapshot(spark, str(table)).version() == 3
    gap.unlink()
    DeltaTransaction(spark, str(table), "writer").commit(2, "")
    assert newest_snapshot(spark, str(table)).version() == 4
