"""Rows of a version: of one that Delta has at hand, without a look at the log, and of any."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from lakeingest.engine.delta.snapshot import cached_snapshot, rows_as_of
from tests.benchmarks.job_book import JobBook


def appended(spark: SparkSession, path: Path, first: int) -> None:
    spark.range(first, first + 2).write.format("delta").mode("append").save(str(path))


def test_the_newest_version_is_what_version_as_of_reads_and_no_other_one_is_given(
    spark: SparkSession, tmp_path: Path
) -> None:
    appended(spark, tmp_path, 0)
    spark.sql(
        f"ALTER TABLE delta.`{tmp_path}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    appended(spark, tmp_path, 2)
    spark.sql(f"DELETE FROM delta.`{tmp_path}` WHERE id = 3")
    newest = cached_snapshot(spark, str(tmp_path), 3)
    assert newest is not None
    as_of = spark.read.format("delta").option("versionAsOf", 3).load(str(tmp_path))
    assert newest.schema == as_of.schema
    assert sorted(row.id for row in newest.collect()) == [0, 1, 2]
    assert sorted(row.id for row in as_of.collect()) == [0, 1, 2]
    assert cached_snapshot(spark, str(tmp_path), 2) is None
    assert cached_snapshot(spark, str(tmp_path), 4) is None


def test_the_log_is_not_listed(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "table"
    appended(spark, table, 0)
    (table / "_delta_log").rename(tmp_path / "away")
    newest = cached_snapshot(spark, str(table), 0)
    assert newest is not None
    assert newest.columns == ["id"]


@pytest.mark.alone
def test_files_that_a_checksum_lists_are_read_without_a_job_that_finds_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    for first in (0, 2):
        appended(spark, tmp_path, first)
    book = JobBook(spark)
    newest = cached_snapshot(spark, str(tmp_path), 1)
    assert newest is not None
    book.ended()
    assert sorted(row.id for row in newest.collect()) == [0, 1, 2, 3]
    assert book.ended().total() == 1
    as_of = spark.read.format("delta").option("versionAsOf", 1).load(str(tmp_path))
    assert newest.schema == as_of.schema


def test_every_version_is_what_version_as_of_reads(spark: SparkSession, tmp_path: Path) -> None:
    folder = f"delta.`{tmp_path}`"
    appended(spark, tmp_path, 0)
    spark.sql(f"ALTER TABLE {folder} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    spark.sql(f"DELETE FROM {folder} WHERE id = 1")
    spark.sql(f"ALTER TABLE {folder} ADD COLUMNS (v STRING)")
    appended(spark, tmp_path, 2)
    # A version without its checksum file, which lists its data files.
    (tmp_path / "_delta_log" / f"{2:020}.crc").unlink()
    for version in range(5):
        rows = rows_as_of(spark, str(tmp_path), version)
        as_of = spark.read.format("delta").option("versionAsOf", version).load(str(tmp_path))
        assert rows.schema == as_of.schema
        assert sorted(rows.collect()) == sorted(as_of.collect())
        assert {*rows.inputFiles()} == {*as_of.inputFiles()}
    with pytest.raises(AnalysisException, match="version 5"):
        rows_as_of(spark, str(tmp_path), 5)


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
