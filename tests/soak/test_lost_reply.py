"""A commit that landed and was reported failed: the run goes on as if it had been answered."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from lakeingest.apply import attempts
from lakeingest.apply.run import run_pipeline
from lakeingest.config import load_config
from lakeingest.folders import LEDGER_FOLDER
from tests.recordings.altered import short_run
from tests.recordings.check import check_history
from tests.recordings.configure import RecordedRun, write_properties
from tests.recordings.rust import RustLake, queried
from tests.soak.switches import LOST_REPLY, switched_off

pytestmark = [pytest.mark.slow, pytest.mark.soak]

HISTORY = """
    SELECT transactions, events, end_offset FROM t WHERE kind = 'publication' ORDER BY batch
"""


def run_in(folder: Path) -> RecordedRun:
    return short_run(folder / "log", 12, "orders", "txlog")


def pipeline(folder: Path) -> Path:
    settings = run_in(folder).configuration(folder / "lake", batch_max_events="24")
    return write_properties(folder / "pipeline.properties", settings)


def result(folder: Path) -> dict[str, list[str]]:
    """Return every publication's reach and every row of every table, metadata included."""
    tables = {
        path.name: sorted(rows(path, "SELECT * FROM t"))
        for path in sorted((folder / "lake").iterdir())
        if "." in path.name
    }
    return {"history": rows(folder / "lake" / LEDGER_FOLDER, HISTORY), **tables}


def rows(table: Path, query: str) -> list[str]:
    return [str(row) for row in zip(*queried(DeltaTable(str(table)), query).values(), strict=True)]


@pytest.fixture(scope="module")
def undisturbed(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[str]]:
    folder = tmp_path_factory.mktemp("undisturbed")
    run_pipeline(spark, load_config(pipeline(folder)))
    return result(folder)


# The first creates a table, the other one changes a table that is there: CI has that one in
# tests/faults/test_two_ahead.py.
@pytest.mark.parametrize("commit", [1, 4])
def test_a_commit_whose_answer_is_lost_is_not_done_twice(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    undisturbed: dict[str, list[str]],
    commit: int,
) -> None:
    monkeypatch.setenv(LOST_REPLY, str(commit))
    monkeypatch.setattr(attempts, "PAUSES_SECONDS", (0.0,))
    with switched_off("lost-reply"):
        summary = run_pipeline(spark, load_config(pipeline(tmp_path)))
    assert any("was lost" in text for text in summary.warnings)
    assert [*undisturbed] == ["history", "public.orders", "public.txlog"]
    assert result(tmp_path) == undisturbed
    run = run_in(tmp_path)
    assert check_history(run, RustLake(tmp_path / "lake", run.namespace)).violations == ()
