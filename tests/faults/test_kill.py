"""A run may die anywhere, or sleep while another works: readers and final tables do not notice."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.failpoints import FAILPOINTS, VERSIONS_FAILPOINT
from lakeingest.apply.run import run_pipeline
from lakeingest.config import load_config
from lakeingest.errors import FencedError, LakeingestError
from lakeingest.folders import LEDGER_FOLDER
from lakeingest.reader import open_lake
from tests.faults.killed import Kill, Ordeal, Writer, failpoint_kills, random_kills
from tests.recordings.altered import short_run
from tests.recordings.check import check_history, check_tables
from tests.recordings.configure import RecordedRun, packaged_run, write_properties
from tests.recordings.log_lake import LogLake
from tests.recordings.rust import RustLake
from tests.recordings.totals import publications
from tests.recordings.watcher import Watcher, reader_of

pytestmark = pytest.mark.slow

SMALL_BATCHES = {"lakeingest.batch.max.events": "1000"}
FEW_EVENTS = {"lakeingest.batch.max.events": "200"}
"""Some batches of the first transactions, which are small."""

TABLES = ("customers", "order_lines", "orders", "txlog")

HUDI = {"lakeingest.target.format": "hudi"}
COPY_ON_WRITE = {**HUDI, "lakeingest.hudi.table.type": "COPY_ON_WRITE"}
FORMATS = pytest.mark.parametrize(
    "tables", [{}, HUDI, COPY_ON_WRITE], ids=["delta", "hudi-mor", "hudi-cow"]
)


@pytest.fixture(scope="module")
def run() -> RecordedRun:
    return packaged_run()


@contextmanager
def watching(run: RecordedRun, target: Path) -> Iterator[Watcher]:
    watcher = reader_of(run, target)
    watcher.start()
    try:
        yield watcher
    finally:
        watcher.stop()


@pytest.mark.soak
def test_a_run_killed_between_versions_gives_each_transaction_its_publication(
    spark: SparkSession, tmp_path: Path
) -> None:
    run = short_run(tmp_path / "log", 150, *TABLES)
    settings = {
        "lakeingest.commit.mode": "per-transaction",
        "lakeingest.commit.max.transactions": "40",
    }
    ordeal = Ordeal(spark, run, tmp_path, settings)
    outcome = ordeal.suffer([Kill(VERSIONS_FAILPOINT, 1), Kill(VERSIONS_FAILPOINT, 40)])
    assert (outcome.violations, outcome.kills) == ([], {VERSIONS_FAILPOINT: 2})
    history = check_history(run, LogLake(tmp_path / "lake-1", run.namespace), most=1)
    assert (history.violations, history.publications) == ((), 151)


def test_a_run_killed_between_its_commits_is_finished_and_early_readers_find_the_lake(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The soak kills everywhere else, too."""
    lake = tmp_path / "lake"
    # A reader looks while the lake is being made: the folder of the first commit is there, its file
    # is not yet. Delta remembers in this session that there was no table.
    (lake / LEDGER_FOLDER / "_delta_log").mkdir(parents=True)
    with pytest.raises(LakeingestError):
        open_lake(spark, str(lake))
    run = short_run(tmp_path / "log", 8, "customers", "ledger")
    configuration = write_properties(tmp_path / "pipeline.properties", run.configuration(lake))
    with watching(run, lake) as watcher:
        # Of two tables, one has the batch behind the initial snapshot, which is published.
        writer = Writer(configuration, tmp_path / "killed.log", "3.after-first-commit:3")
        assert writer.wait() == -signal.SIGKILL, writer.said()
        seen = publications(open_lake(spark, str(lake)))
        assert seen
        run_pipeline(spark, load_config(configuration))
    assert watcher.violations == []
    assert watcher.checks > 0
    history = check_history(run, RustLake(lake, run.namespace))
    assert history.violations == ()
    assert history.publications > len(seen)
    assert history.last == history.of


@pytest.mark.soak
@FORMATS
def test_a_run_killed_at_every_failpoint_and_at_random_moments_ends_with_the_same_tables(
    spark: SparkSession, run: RecordedRun, tmp_path: Path, tables: dict[str, str]
) -> None:
    """With Hudi, whose commits take seconds, of fewer commits and tables."""
    run = short_run(tmp_path / "log", 150, *TABLES) if tables else run
    settings = {**(FEW_EVENTS if tables else SMALL_BATCHES), **tables}
    by_chance = random_kills(0 if tables else 2, seed=3, earliest=8.0, latest=25.0)
    outcome = Ordeal(spark, run, tmp_path, settings).suffer(failpoint_kills(FAILPOINTS) + by_chance)
    assert (outcome.violations, outcome.unreached) == ([], [])
    assert set(FAILPOINTS) <= set(outcome.kills)
    assert outcome.reader_checks > len(FAILPOINTS)
    assert len(outcome.tables) == (0 if tables else 9)


@pytest.mark.soak
def test_a_driver_that_slept_while_another_finished_is_fenced_and_changes_nothing(
    spark: SparkSession, run: RecordedRun, tmp_path: Path
) -> None:
    target = tmp_path / "lake"
    settings = run.configuration(target, batch_max_events="3000")
    configuration = write_properties(tmp_path / "pipeline.properties", settings)
    with watching(run, target) as watcher:
        first = Writer(configuration, tmp_path / "first.log")
        try:
            assert watcher.wait_for(1, seconds=300), first.said()
            first.pause()
            second = Writer(configuration, tmp_path / "second.log")
            assert second.wait() == 0, second.said()
            before = publications(open_lake(spark, str(target)))
            first.resume()
            assert first.wait() == FencedError.exit_code, first.said()
        finally:
            first.kill()
    assert watcher.violations == []
    assert publications(open_lake(spark, str(target))) == before
    history = check_history(run, RustLake(target, run.namespace))
    assert (history.violations, history.last) == ((), history.of)
    assert [t for t in check_tables(run, configuration) if t.differences] == []
