"""Few rows run without generated code and without a shuffle; the user's settings stay for many."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakeingest.apply.batch.changeset import changeset
from lakeingest.apply.batch.table_part import TablePart
from lakeingest.engine import few_rows
from lakeingest.engine.delta.snapshot import rows_as_of
from lakeingest.engine.few_rows import (
    FEW_BYTES,
    FEW_ROWS,
    READS_IN_BATCHES,
    for_few_rows,
    in_session,
    records_for_few_rows,
    session_for_few_rows,
)
from lakeingest.engine.own_session import own_session
from tests.logs.written import WrittenLog, change

WHOLE_STAGE, PARTITIONS = "spark.sql.codegen.wholeStage", "spark.sql.shuffle.partitions"
USERS = {WHOLE_STAGE: "true", PARTITIONS: "7"}


def settings(frame: DataFrame) -> dict[str, str | None]:
    return {name: frame.sparkSession.conf.get(name) for name in USERS}


@pytest.fixture
def frame(spark: SparkSession) -> DataFrame:
    """Four rows in two partitions, in a session with the user's settings."""
    return own_session(spark, USERS).range(0, 4, numPartitions=2)


def test_few_rows_go_on_in_one_partition_without_generated_code(frame: DataFrame) -> None:
    few = for_few_rows(frame, FEW_ROWS)
    assert settings(few) == {WHOLE_STAGE: "false", PARTITIONS: "1"}
    assert few.rdd.getNumPartitions() == 1
    assert settings(frame) == USERS
    assert sorted(row["id"] for row in few.collect()) == [0, 1, 2, 3]
    assert for_few_rows(few, 4).sparkSession is few.sparkSession


def test_many_rows_and_large_rows_stay_as_they_are(frame: DataFrame) -> None:
    assert for_few_rows(frame, FEW_ROWS + 1) is frame
    assert for_few_rows(frame, 4, FEW_BYTES + 1) is frame
    assert records_for_few_rows(frame, 4, ranges=1) is not frame
    assert records_for_few_rows(frame, 4, ranges=17) is frame


def plan(frame: DataFrame) -> str:
    rows: Any = frame
    return str(rows._jdf.queryExecution().executedPlan().toString())


@pytest.mark.parametrize("among", [FEW_ROWS, FEW_ROWS + 1])
def test_few_rows_are_grouped_without_a_shuffle(frame: DataFrame, among: int) -> None:
    few = for_few_rows(frame.where("id > 1"), 2, among=among)
    assert few.rdd.getNumPartitions() == 1
    assert {row["id"] for row in few.collect()} == {2, 3}
    assert plan(few.groupBy(F.col("id") % 2).count()).count("Exchange") == 0
    assert plan(frame.groupBy(F.col("id") % 2).count()).count("Exchange") == 1


def test_few_rows_are_selected_from_many_once_and_with_generated_code(frame: DataFrame) -> None:
    assert "Filter" in plan(for_few_rows(frame.where("id > 1"), 2, among=FEW_ROWS))
    assert "Filter" not in plan(for_few_rows(frame.where("id > 1"), 2, among=FEW_ROWS + 1))


def test_what_hudi_does_to_a_session_meanwhile_harms_no_reading_of_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Hudi switches the reading in batches of every session that reads its tables."""
    spark.range(3).coalesce(1).write.format("delta").save(str(tmp_path))
    run = own_session(spark, {READS_IN_BATCHES: "false"})
    few = session_for_few_rows(run)
    run.conf.set(READS_IN_BATCHES, "true")
    rows = in_session(rows_as_of(run, str(tmp_path), 0), few)
    assert sorted(row["id"] for row in rows.collect()) == [0, 1, 2]


def test_what_is_joined_with_many_rows_can_have_their_session(frame: DataFrame) -> None:
    again = in_session(for_few_rows(frame, 4), frame.sparkSession)
    assert settings(again.join(frame, "id").groupBy("id").agg(F.count("*"))) == USERS
    assert again.join(frame, "id").count() == 4


def test_a_run_chooses_by_the_number_of_rows_of_its_batches(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, chosen = changeset, set()

    def making(part: TablePart, *rest: Any) -> Any:
        chosen.add((part.table.collection, settings(part.changes)[WHOLE_STAGE]))
        return make(part, *rest)

    monkeypatch.setattr("lakeingest.apply.batch.writer.changeset", making)
    monkeypatch.setattr(few_rows, "FEW_ROWS", 1)
    log = WrittenLog(tmp_path / "log", "postgresql")
    log.transaction("100:100", change("a", 100), change("b", 100))
    log.transaction("200:200", replace(change("c", 200), op="c"))
    log.ingest(own_session(spark, USERS), tmp_path / "lake", commit_max_transactions="1")
    # Each table has one row; the first batch has two.
    assert chosen == {("public.a", "true"), ("public.b", "true"), ("public.c", "false")}
