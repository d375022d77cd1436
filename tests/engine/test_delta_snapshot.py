"""Rows of a version: of one that Delta has at hand, without a look at the log, and of any."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row, SparkSession

from lakeingest.engine.delta.snapshot import cached_snapshot, rows_as_of


def appended(spark: SparkSession, path: Path, first: int) -> None:
    spark.range(first, first + 2).write.format("delta").mode("append").save(str(path))


def test_the_log_is_not_listed(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "table"
    appended(spark, table, 0)
    (table / "_delta_log").rename(tmp_path / "away")
    newest = cached_snapshot(spark, str(table), 0)
    assert newest is not None
    assert newest.columns == ["id"]


def test_files_that_a_checksum_lists_are_read_without_a_job_that_finds_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    for first in (0, 2):
        appended(spark, tmp_path, first)
    newest = cached_snapshot(spark, str(tmp_path), 1)
    assert newest is not None
    rows, jobs = read(newest)
    assert (sorted(row.id for row in rows), jobs) == ([0, 1, 2, 3], 1)
    as_of = spark.read.format("delta").option("versionAsOf", 1).load(str(tmp_path))
    assert newest.schema == as_of.schema
    # The counter-example, of which no checksum lists the files.
    (tmp_path / "_delta_log" / f"{0:020}.crc").unlink()
    rows, jobs = read(rows_as_of(spark, str(tmp_path), 0))
    assert sorted(row.id for row in rows) == [0, 1]
    assert jobs > 1


def read(frame: DataFrame) -> tuple[list[Row], int]:
    """Return the rows, and how many jobs that took: other tests have theirs meanwhile."""
    context: Any = frame.sparkSession.sparkContext
    group = str(uuid4())
    context.setJobGroup(group, "how many are there?")
    try:
        rows = frame.collect()
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
        context.setLocalProperty("spark.job.description", None)
    context._jsc.sc().listenerBus().waitUntilEmpty()
    return rows, len(context.statusTracker().getJobIdsForGroup(group))


def test_every_version_and_the_newest_at_hand_are_what_version_as_of_reads_and_no_other_is_given(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = f"delta.`{tmp_path}`"
    # The row that is deleted is in a file with another one.
    made = spark.range(3).coalesce(1).write.format("delta")
    made.option("delta.enableDeletionVectors", "true").save(str(tmp_path))
    spark.sql(f"DELETE FROM {folder} WHERE id = 1")
    spark.sql(f"ALTER TABLE {folder} ADD COLUMNS (v STRING)")
    appended(spark, tmp_path, 5)
    # A version without its checksum file, which lists its data files.
    (tmp_path / "_delta_log" / f"{1:020}.crc").unlink()
    shown = {}
    for version in range(4):
        rows = rows_as_of(spark, str(tmp_path), version)
        as_of = spark.read.format("delta").option("versionAsOf", version).load(str(tmp_path))
        assert rows.schema == as_of.schema
        shown[version] = sorted(as_of.collect())
        assert sorted(rows.collect()) == shown[version]
        assert {*rows.inputFiles()} == {*as_of.inputFiles()}
    newest = cached_snapshot(spark, str(tmp_path), 3)
    assert newest is not None
    assert newest.schema == as_of.schema
    assert sorted(newest.collect()) == shown[3]
    assert [row.id for row in shown[3]] == [0, 2, 5, 6]
    assert cached_snapshot(spark, str(tmp_path), 2) is None
    assert cached_snapshot(spark, str(tmp_path), 4) is None
    with pytest.raises(AnalysisException, match="version 4"):
        rows_as_of(spark, str(tmp_path), 4)


def test_a_table_that_another_process_made_anew_is_read_as_it_is(
    spark: SparkSession, tmp_path: Path
) -> None:
    for name, first in (("one", 0), ("other", 7)):
        appended(spark, tmp_path / name, first)
        appended(spark, tmp_path / name, first + 10)
    for version in (1, 0):
        assert rows_as_of(spark, str(tmp_path / "one"), version).first() is not None
    (tmp_path / "one").rename(tmp_path / "away")
    (tmp_path / "other").rename(tmp_path / "one")
    for version, ids in ((0, [7, 8]), (1, [7, 8, 17, 18])):
        rows = rows_as_of(spark, str(tmp_path / "one"), version)
        assert sorted(row.id for row in rows.collect()) == ids
