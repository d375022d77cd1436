"""How long a continuous run waits between two windows."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.pace import IDLE_SECONDS, Pace
from lakeingest.apply.run import run_pipeline
from tests.logs.written import WrittenLog, change


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses in seconds, none of which is made. The clock stands at 100."""
    made: list[float] = []
    monkeypatch.setattr("lakeingest.apply.pace.time.sleep", made.append)
    monkeypatch.setattr("lakeingest.apply.pace.time.monotonic", lambda: 100.0)
    return made


@pytest.mark.parametrize(
    ("least", "began", "is_idle", "pause"),
    [
        (0, 95, False, 0),
        (0, 95, True, IDLE_SECONDS),
        (30, 95, False, 25),
        (30, 95, True, 25),
        (30, 10, False, 0),
        (30, 10, True, 0.05),
    ],
)
def test_the_next_window_begins_the_least_time_after_the_last_one(
    pauses: list[float], least: float, began: float, is_idle: bool, pause: float
) -> None:
    Pace(least).wait(began, is_idle=is_idle)
    assert pauses == [pause]


@pytest.mark.soak
@pytest.mark.slow
def test_a_continuous_run_waits_after_windows_with_batches_too(
    spark: SparkSession, log: WrittenLog, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 2, 3):
        log.transaction(f"{number}:{number}00", change("a", 100 * number))
    config = log.configured(lake, batch_max_events="1", window_max_records="1")
    waits: list[bool] = []
    monkeypatch.setattr(Pace, "wait", lambda _, __, *, is_idle: waits.append(is_idle))
    summary = run_pipeline(
        spark, config, continuous=True, min_sync_interval_seconds=30, max_batches=3
    )
    assert summary.transactions == 3
    # The first window has two transactions.
    assert waits == [False, False]
