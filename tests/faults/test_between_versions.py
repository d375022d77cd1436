"""A run dies between versions of some tables; CI has it in ``recordings/test_per_transaction``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.run import run_pipeline
from lakeingest.config import load_config
from lakeingest.config.model import PipelineConfig
from tests.faults.before_commit import before_each_version
from tests.faults.lost_publication import CrashError
from tests.recordings.altered import short_run
from tests.recordings.check import check_history
from tests.recordings.configure import RecordedRun
from tests.recordings.log_lake import LogLake

pytestmark = [pytest.mark.slow, pytest.mark.soak]

COMMITS = 12
TABLES = ("customers", "documents", "ledger")
"""The initial snapshot makes them, so that no transaction needs a batch of its own."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RecordedRun:
    return short_run(tmp_path_factory.mktemp("log") / "short", COMMITS, *TABLES)


@contextmanager
def dying(monkeypatch: pytest.MonkeyPatch, **commits: int) -> Iterator[None]:
    """Let a run die before a version of each named table; the table then has so many of the run."""
    before: Counter[str] = Counter()

    def count(collection: str, _commits: int) -> None:
        table = collection.removeprefix("public.")
        if before[table] == commits.get(table):
            raise CrashError
        before[table] += 1

    with before_each_version(monkeypatch, count), pytest.raises(CrashError):
        yield
    assert {table: before[table] for table in commits} == commits


def configured(run: RecordedRun, folder: Path, **settings: str) -> PipelineConfig:
    given = {"commit_mode": "per-transaction", "commit_max_transactions": "6", **settings}
    return load_config(run.configuration(folder / "lake", **given))


def test_each_transaction_gets_its_publication_though_tables_are_ahead_by_different_amounts(
    spark: SparkSession, run: RecordedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = configured(run, tmp_path, deletes="hard")
    # The customers are written to the batch's end.
    with dying(monkeypatch, documents=3, ledger=1):
        run_pipeline(spark, config)
    # A batch follows the one that recovers.
    run_pipeline(spark, config)
    history = check_history(run, LogLake(tmp_path / "lake", run.namespace), most=1)
    assert (history.violations, history.publications) == ((), COMMITS + 1)
    assert history.last == COMMITS


def test_a_run_that_groups_transactions_goes_on_where_versions_ended(
    spark: SparkSession, run: RecordedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with dying(monkeypatch, documents=3):
        run_pipeline(spark, configured(run, tmp_path, deletes="hard"))
    run_pipeline(spark, configured(run, tmp_path, deletes="hard", commit_mode="grouped"))
    history = check_history(run, LogLake(tmp_path / "lake", run.namespace))
    assert (history.violations, history.last) == ((), COMMITS)
