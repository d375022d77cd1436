"""A batch is written while the one before it is being published: a crash leaves tables two ahead.

Timing decides whether a real kill meets that moment, so it is made (``lost_publication.py``).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply import attempts
from lakeingest.apply.run import run_pipeline
from lakeingest.config import load_config
from lakeingest.sink.delta.sink import DeltaSink
from tests.faults.lost_publication import LOST, CrashError, lose_a_publication
from tests.forms import further
from tests.recordings.altered import short_run
from tests.recordings.check import check_history
from tests.recordings.rust import RustLake
from tests.sink.lake import sink_settings
from tests.soak.switches import switched_off
from tests.young_jvm import generate_code

pytestmark = pytest.mark.slow


@pytest.mark.generated
def test_tables_two_batches_ahead_are_published_at_the_commit_they_show_though_a_reply_is_lost(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = short_run(tmp_path / "log", 72, "orders", "txlog")
    target = tmp_path / "lake"
    settings = {**run.configuration(target), "lakeingest.batch.max.events": "120"}
    with monkeypatch.context() as crash:
        lose_a_publication(crash)
        with pytest.raises(CrashError):
            run_pipeline(spark, load_config(settings))
    before = check_history(run, RustLake(target, run.namespace))
    assert (before.publications, before.violations) == (LOST - 1, ())
    assert LOST + 1 in batches_of_tables(spark, target, run.configuration(target))
    generate_code(spark, generate=False)
    # What the tables hold lies beyond such a window: it may not publish less than they hold.
    small = {"lakeingest.batch.max.events": "20", "lakeingest.window.max.records": "60"}
    monkeypatch.setattr(attempts, "PAUSES_SECONDS", (0.0,))
    # The third commit is of the batch behind the one that recovers two tables.
    with switched_off("lost-reply"):
        summary = run_pipeline(spark, load_config({**settings, **small}))
    assert any("was lost" in text for text in summary.warnings)
    lake = RustLake(target, run.namespace)
    after = check_history(run, lake)
    assert after.violations == ()
    assert after.last == after.of == 72
    assert sum(publication.transactions for publication in lake.publications()) == 72


@pytest.mark.parametrize(
    ("last", "settings"), [(1, {}), further(LOST, {"lakeingest.commit.max.transactions": "5"})]
)
def test_no_batch_is_written_before_a_snapshot_or_one_with_a_bound_is_published(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    last: int,
    settings: dict[str, str],
) -> None:
    """A snapshot of some tables at that moment and others at a later one is no commit."""
    run = short_run(tmp_path / "log", 30, "customers", "orders")
    config = load_config({**run.configuration(tmp_path / "lake"), **settings})
    with monkeypatch.context() as crash:
        begun = lose_a_publication(crash, last, wait_seconds=0.5)
        with pytest.raises(CrashError):
            run_pipeline(spark, config)
    assert max(begun) == last


def batches_of_tables(spark: SparkSession, target: Path, settings: dict[str, str]) -> set[int]:
    """Return which batches the tables' newest commits are of."""
    pipeline = settings["lakeingest.pipeline.name"]
    sink = DeltaSink(spark, sink_settings(str(target), pipeline=pipeline))
    folders = [path.name for path in target.iterdir() if (path / "_delta_log").is_dir()]
    states = [sink.state(name) for name in folders]
    return {state.note.batch for state in states if state is not None}
