"""What the listed files of a Delta version show without a job."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from lakeingest.engine.delta.files import highest_rows, may_hide_rows


def test_the_highest_value_of_a_column_is_in_the_statistics_of_the_files_and_one_has_its_row(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "table")
    for first in (10, 0):
        spark.range(first, first + 3).coalesce(1).write.format("delta").mode("append").save(path)
        highest = highest_rows(spark, path, "id")
        assert highest is not None
        assert highest[0] == 12
        assert sorted(row["id"] for row in highest[1].collect()) == [10, 11, 12]
    assert highest_rows(spark, path, "no such column") is None


def test_statistics_that_count_deleted_rows_are_not_trusted(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "table")
    rows = spark.range(0, 3).coalesce(1).write.format("delta")
    rows.option("delta.enableDeletionVectors", "true").save(path)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 2")
    assert highest_rows(spark, path, "id") is None


def test_a_table_that_a_restore_left_with_the_feature_alone_may_hide_rows_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "table")
    spark.range(0, 3).write.format("delta").save(path)
    setting = "'delta.enableDeletionVectors' = 'true'"
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ({setting})")
    spark.sql(f"RESTORE TABLE delta.`{path}` TO VERSION AS OF 0")
    assert may_hide_rows(spark, path, begin=True)
    assert not may_hide_rows(spark, path, begin=False)


def test_a_folder_without_a_table_has_no_highest_rows(spark: SparkSession, tmp_path: Path) -> None:
    assert highest_rows(spark, str(tmp_path), "id") is None
