"""An automatic batch size finds the batches that take some seconds."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.run import run_pipeline
from lakeingest.apply.window.batch_size import FIRST_EVENTS, SECONDS, BatchSize
from lakeingest.config import load_config
from tests.recordings.altered import short_run
from tests.recordings.check import check_history
from tests.recordings.rust import RustLake

MOST = 250_000


def adapted_size(fixed_seconds: float, events_per_second: float, size: BatchSize) -> BatchSize:
    """Return the size after twenty full batches."""
    for _ in range(20):
        size = size.after(size.events, fixed_seconds + size.events / events_per_second)
    return size


@pytest.mark.parametrize("first", [1_000, FIRST_EVENTS, MOST])
def test_a_backlog_is_cut_into_batches_of_some_seconds(first: int) -> None:
    size = adapted_size(2.0, 5_000, BatchSize(first, MOST, adapts=True))
    assert 2.0 + size.events / 5_000 == pytest.approx(SECONDS, rel=0.05)


def test_a_size_never_grows_beyond_its_bound() -> None:
    assert adapted_size(0.1, 1_000_000, BatchSize.of(None, MOST)).events == MOST
    assert BatchSize.of(None, 500).events == 500


def test_a_slow_target_still_gets_batches_that_are_worth_a_commit() -> None:
    assert adapted_size(60.0, 1_000_000, BatchSize.of(None, MOST)).events == 1_000


def test_a_small_batch_shows_no_backlog() -> None:
    size = BatchSize.of(None, MOST)
    assert size.after(events=400, seconds=0.5) == size
    assert size.after(events=0, seconds=0.5) == size
    assert size.after(events=400, seconds=2 * SECONDS).events < size.events


def test_one_batch_changes_a_size_by_no_more_than_a_factor() -> None:
    size = BatchSize.of(None, MOST)
    assert size.after(1_000_000, 1.0).events == 4 * FIRST_EVENTS
    assert size.after(FIRST_EVENTS, 10_000.0).events == FIRST_EVENTS // 4


def test_a_fixed_size_stays() -> None:
    fixed = BatchSize.of(7, MOST)
    assert adapted_size(60.0, 10, fixed) == fixed
    assert (fixed.events, fixed.window) == (7, MOST)


def test_a_window_of_an_automatic_size_holds_a_few_batches() -> None:
    size = BatchSize.of(None, MOST)
    assert size.window == 4 * size.events
    assert size.after(1_000_000, 1.0).window == 16 * size.events
    assert adapted_size(0.1, 1_000_000, size).window == MOST


@pytest.mark.soak
@pytest.mark.slow
def test_batches_of_a_run_grow_while_a_backlog_waits(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakeingest.apply.window.batch_size.FIRST_EVENTS", 20)
    monkeypatch.setattr("lakeingest.apply.window.batch_size._LEAST_EVENTS", 1)
    # However slow the machine is.
    monkeypatch.setattr("lakeingest.apply.window.batch_size.SECONDS", 600.0)
    run, lake = short_run(tmp_path / "log", 120, "order_lines", "orders"), tmp_path / "lake"
    config = load_config(run.configuration(lake, batch_max_events="auto"))
    sizes: list[int] = []
    run_pipeline(spark, config, on_batch=lambda batch: sizes.append(batch.events))
    snapshot, first, *others = sizes
    assert first <= 20 < max(others)
    assert check_history(run, RustLake(lake, run.namespace)).violations == ()
