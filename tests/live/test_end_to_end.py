"""Real databases through real Debezium into the lake: small runs of what ``tests.live`` does."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from pyspark.sql import SparkSession

from lakeingest.apply.run import run_pipeline
from lakeingest.config import load_config
from tests.live.run import LiveRun
from tests.live.stage import Play, Stage
from tests.recordings.check import History, check_history, check_tables
from tests.recordings.configure import write_properties
from tests.recordings.rust import RustLake
from tests.rig.chain import Chain
from tests.rig.connectors import Format
from tests.workloads.crew import Pace
from tests.workloads.shop import Schedule
from tests.workloads.source import Family

pytestmark = [pytest.mark.slow, pytest.mark.kafka]

NUMBER = 150
SHOP = Schedule(giant_every=60, giant_rows=1_000, alter_at=80, signal_every=60, truncate_from=60)
ARRIVAL_SECONDS = 90.0


def play(workload: str, family: Family) -> Play:
    pace = Pace(per_second=60, transactions=NUMBER, hold_at=SHOP.truncate_from - 1)
    return Play(workload, family, 5, pace, SHOP, bulk=500, rows=250)


def ingested(
    spark: SparkSession,
    stage: Stage,
    run: LiveRun,
    stop: Callable[[History], bool],
    mode: str = "metadata",
) -> tuple[History, Path]:
    """Run the pipeline until ``stop`` likes what its publications show."""
    lake = stage.folder / f"lake-{run.form}-{mode}"
    properties = run.configuration(
        stage.chain,
        lake,
        batch_max_events="4000",
        transaction_mode=mode,
        transaction_boundary_delay_seconds="1",
    )
    configuration = write_properties(stage.folder / f"{run.form}-{mode}.properties", properties)
    deadline = time.monotonic() + ARRIVAL_SECONDS
    while True:
        run_pipeline(spark, load_config(configuration))
        history = check_history(run, RustLake(lake, run.namespace))
        if stop(history) or time.monotonic() > deadline:
            return history, configuration


def generated(*values: object) -> ParameterSet:
    """Return a further form, in generated code: ten tables of it are too much for CI."""
    return pytest.param(*values, marks=[pytest.mark.soak, pytest.mark.generated])


def all_of_it(history: History) -> bool:
    return bool(history.violations) or history.last == history.of


def has_commits(history: History) -> bool:
    return bool(history.violations) or (history.last or 0) > 0


@pytest.mark.parametrize(
    ("workload", "family", "formats"),
    [
        ("sysbench", "mariadb", (Format.AVRO,)),
        generated("shop", "mariadb", (Format.AVRO,)),
        generated("shop", "postgresql", (Format.JSON,)),
        generated("bank", "postgresql", (Format.JSON, Format.AVRO)),
    ],
)
def test_the_lake_becomes_the_database_by_way_of_its_commits(
    spark: SparkSession,
    chain: Chain,
    tmp_path: Path,
    workload: str,
    family: Family,
    formats: tuple[Format, ...],
) -> None:
    stage = Stage(chain, play(workload, family), tmp_path)
    runs = stage.captured(formats)
    stage.workload.finish(60)
    assert stage.workload.violations() == []
    stage.oracle.end()
    try:
        for run in runs:
            history, configuration = ingested(spark, stage, run, all_of_it)
            assert history.violations == ()
            assert history.last == history.of > NUMBER // 2
            assert history.publications > 1
            tables = check_tables(run, configuration)
            assert {table.table: table.differences for table in tables} == dict.fromkeys(
                stage.workload.captured, ()
            )
        if (workload, family) == ("shop", "postgresql"):
            # The newest transactions wait for later ones, which never come.
            by_rows, _ = ingested(spark, stage, runs[0], has_commits, mode="boundary")
            assert by_rows.violations == ()
            assert has_commits(by_rows)
    finally:
        for run in runs:
            chain.connect.delete_connector(run.connector)
