"""Kills while tables are maintained, and while they are loaded anew; see ``test_kill.py``."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.choice.reload import reload_tables
from lakeingest.apply.failpoints import FAILPOINTS, MAINTENANCE_FAILPOINTS
from lakeingest.apply.run import run_pipeline
from lakeingest.config import load_config
from tests.faults.killed import Ordeal, failpoint_kills, random_kills
from tests.faults.test_kill import COPY_ON_WRITE, FEW_EVENTS, FORMATS, TABLES
from tests.recordings.altered import short_run

pytestmark = [pytest.mark.slow, pytest.mark.soak]


@FORMATS
def test_a_run_killed_while_it_maintains_a_table_ends_with_the_same_tables(
    spark: SparkSession, tmp_path: Path, tables: dict[str, str]
) -> None:
    # A run maintains the tables behind each window. So each of them is a moment to kill: a window
    # has one batch, and few are left when the last kill is over.
    every = {"lakeingest.maintain.batches": "1", "lakeingest.window.max.records": "150"}
    run = short_run(tmp_path / "log", 150, *TABLES)
    # A copy-on-write table has nothing to compact: it gets no version to publish.
    all_of_them = tables != COPY_ON_WRITE
    passed = [at for at in MAINTENANCE_FAILPOINTS if all_of_them or not at.endswith("-publication")]
    kills = failpoint_kills(passed) + random_kills(1, seed=5, earliest=8, latest=25)
    outcome = Ordeal(spark, run, tmp_path, {**FEW_EVENTS, **every, **tables}).suffer(kills)
    assert (outcome.violations, outcome.unreached) == ([], [])
    assert set(passed) <= set(outcome.kills)
    assert outcome.reader_checks > len(passed)


@FORMATS
def test_tables_are_loaded_anew_by_runs_that_are_killed_at_every_failpoint(
    spark: SparkSession, tmp_path: Path, tables: dict[str, str]
) -> None:
    run = short_run(tmp_path / "log", 150, *TABLES)

    def begin(configuration: Path) -> None:
        config = load_config(configuration)
        run_pipeline(spark, config, max_batches=2)
        reload_tables(spark, config, ["public.orders", "public.txlog"])

    kills = failpoint_kills(FAILPOINTS)
    outcome = Ordeal(spark, run, tmp_path, {**FEW_EVENTS, **tables}, begin=begin).suffer(kills)
    assert outcome.violations == []
    assert set(FAILPOINTS) <= set(outcome.kills)
    assert outcome.reader_checks > len(FAILPOINTS)
