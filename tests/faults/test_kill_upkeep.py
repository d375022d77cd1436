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
from tests.faults.test_kill import FEW_EVENTS, HUDI, TABLES
from tests.recordings.altered import short_run

pytestmark = [pytest.mark.slow, pytest.mark.soak]

# What is done to a copy-on-write table is done to a merge-on-read one, too, which is compacted.
TYPES = pytest.mark.parametrize("tables", [{}, HUDI], ids=["delta", "hudi-mor"])


@TYPES
def test_a_run_killed_while_it_maintains_a_table_ends_with_the_same_tables(
    spark: SparkSession, tmp_path: Path, tables: dict[str, str]
) -> None:
    # A run maintains the tables behind each window. So each of them is a moment to kill. Smaller
    # windows leave Hudi nothing to compact, and so nothing to publish.
    every = {"lakeingest.maintain.batches": "1", "lakeingest.window.max.records": "400"}
    run = short_run(tmp_path / "log", 150, *TABLES)
    kills = failpoint_kills(MAINTENANCE_FAILPOINTS) + random_kills(1, 5, earliest=8, latest=25)
    outcome = Ordeal(spark, run, tmp_path, {**FEW_EVENTS, **every, **tables}).suffer(kills)
    assert (outcome.violations, outcome.unreached) == ([], [])
    assert set(MAINTENANCE_FAILPOINTS) <= set(outcome.kills)
    assert outcome.reader_checks > len(MAINTENANCE_FAILPOINTS)


@TYPES
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
