"""What the log of a table tells, also when another process writes it."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from lakeingest.engine.delta_log import commits, is_delta_table


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
        writer = spark.range(1).write.format("delta").mode("append")
        writer.option("userMetadata", text).save(path)
    assert [(c.version, c.metadata) for c in commits(spark, path)] == [(1, "two"), (0, "one")]
