"""Windows of a backlog: the next one is read while this one is written, and nothing is torn."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.batch.writer import BatchWriter
from lakeingest.apply.run import run_pipeline
from lakeingest.apply.window import prefetch
from lakeingest.apply.window.next_frontier import frontier_after
from lakeingest.apply.window.resolve import read_window
from lakeingest.apply.window.window import Window
from lakeingest.config import load_config
from tests.recordings.check import check_history, check_tables
from tests.recordings.configure import RecordedRun, packaged_run, write_properties
from tests.recordings.rust import RustLake

pytestmark = [pytest.mark.slow, pytest.mark.soak]


@dataclass
class Readings:
    """The ENDs at which windows began, in order.

    Attributes:
        ahead: Of those that were read in a thread of their own, beside the writing.
        waited: Of those that the run read itself, with nothing to write meanwhile.
        written: Of those that were written.
    """

    ahead: list[int] = field(default_factory=list)
    waited: list[int] = field(default_factory=list)
    written: list[int] = field(default_factory=list)


def ingest_in_small_windows(
    spark: SparkSession, run: RecordedRun, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Readings:
    """Run over recorded events in small batches and windows."""
    limits = {"batch_max_events": "1000", "window_max_records": "3000"}
    readings = Readings()
    record(monkeypatch, readings)
    run_pipeline(spark, load_config(run.configuration(folder / "lake", **limits)))
    return readings


def record(monkeypatch: pytest.MonkeyPatch, readings: Readings) -> None:
    """Record the readings of runs from now on."""
    read, write = read_window, BatchWriter.write

    def reading_window(*arguments: Any) -> Window | None:
        beside = threading.current_thread() is not threading.main_thread()
        (readings.ahead if beside else readings.waited).append(arguments[1].end_offset)
        return read(*arguments)

    def writing(self: BatchWriter, window: Window, indexes: Sequence[int], *rest: Any) -> Any:
        readings.written.append(rest[0].head.frontier.end_offset)
        return write(self, window, indexes, *rest)

    monkeypatch.setattr(prefetch, "read_window", reading_window)
    monkeypatch.setattr(BatchWriter, "write", writing)


def test_the_next_window_is_read_while_this_one_is_written_and_every_publication_is_a_commit(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = packaged_run()
    readings = ingest_in_small_windows(spark, run, tmp_path, monkeypatch)
    history = check_history(run, RustLake(tmp_path / "lake", run.namespace))
    assert (history.violations, history.last) == ((), history.of)
    first, *others = readings.written
    assert len(others) >= 3
    assert set(others) <= set(readings.ahead)
    assert first in readings.waited
    # Used, too; but the transactions of 2,000 and of 500 rows need a second reading each, in which
    # their own partitions reach farther.
    again = [end for end in others if end in readings.waited]
    assert set(again) < set(others)
    assert again[-2:] == [931, 1229]
    assert len(again) <= 3


def test_what_was_read_ahead_from_elsewhere_is_not_used(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after another driver's publication; here each expectation is made to be wrong."""

    def wrongly(window: Window, index: int, old: Any) -> Any:
        return old if index > 1 else frontier_after(window, index, old)

    monkeypatch.setattr(prefetch, "frontier_after", wrongly)
    run = packaged_run()
    readings = ingest_in_small_windows(spark, run, tmp_path, monkeypatch)
    assert len(readings.ahead) >= 3
    unexpected = [end for end in readings.written if end not in readings.ahead]
    assert unexpected
    assert set(unexpected) <= set(readings.waited)
    properties = write_properties(
        tmp_path / "again.properties", run.configuration(tmp_path / "lake")
    )
    assert [table for table in check_tables(run, properties) if table.differences] == []
