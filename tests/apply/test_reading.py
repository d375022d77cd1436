"""Windows of a backlog: the next one is read while this one is written, and nothing is torn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply import reading
from lakeingest.apply.batch import BatchWriter
from lakeingest.apply.frontier import frontier_after
from lakeingest.apply.run import run_pipeline
from lakeingest.apply.settle import read_window
from lakeingest.apply.window import Window
from lakeingest.config import load_config
from tests.recordings.check import check_history, check_tables
from tests.recordings.configure import packaged_run, write_properties
from tests.recordings.rust import RustLake

pytestmark = pytest.mark.slow

Event = tuple[str, int]
"""``read`` with the END that a reading begins at, ``write`` and ``written`` with its window's."""


def ingest_in_small_windows(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> list[Event]:
    """Run over the packaged events in windows of 3,000 records; returns what happened in order."""
    properties = write_properties(
        folder / "pipeline.properties",
        {
            **packaged_run().configuration(folder / "lake"),
            "lakeingest.batch.max.events": "1000",
        },
    )
    events: list[Event] = []
    monkeypatch.setattr(reading, "WINDOW_RECORDS", 3_000)
    record(monkeypatch, events)
    run_pipeline(spark, load_config(properties))
    return events


def record(monkeypatch: pytest.MonkeyPatch, events: list[Event]) -> None:
    read, write = read_window, BatchWriter.write

    def reading_window(*arguments: Any) -> Window | None:
        events.append(("read", arguments[2].end_offset))
        return read(*arguments)

    def writing(self: BatchWriter, window: Window, indexes: Sequence[int], *rest: Any) -> Any:
        begin = rest[0].head.frontier.end_offset
        events.append(("write", begin))
        state = write(self, window, indexes, *rest)
        events.append(("written", begin))
        return state

    monkeypatch.setattr(reading, "read_window", reading_window)
    monkeypatch.setattr(BatchWriter, "write", writing)


def places(events: Sequence[Event]) -> Mapping[Event, int]:
    return {event: at for at, event in enumerate(events)}


def test_the_next_window_is_read_while_this_one_is_written_and_every_publication_is_a_commit(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = packaged_run()
    events = ingest_in_small_windows(spark, tmp_path, monkeypatch)
    history = check_history(run, RustLake(tmp_path / "lake", run.namespace))
    assert history.violations == ()
    assert history.place is not None
    assert history.place.last == history.of
    at = places(events)
    begun = [end for kind, end in events if kind == "write"]
    ahead = [
        end
        for before, end in zip(begun, begun[1:], strict=False)
        if at["read", end] < at["written", before]
    ]
    assert len(ahead) > len(begun) // 2, events


@pytest.mark.soak
def test_what_was_read_ahead_from_elsewhere_is_not_used(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after another driver's publication; here each expectation is made to be wrong."""

    def wrongly(window: Window, index: int, old: Any) -> Any:
        return old if index > 1 else frontier_after(window, index, old)

    monkeypatch.setattr(reading, "frontier_after", wrongly)
    ingest_in_small_windows(spark, tmp_path, monkeypatch)
    run = packaged_run()
    properties = write_properties(
        tmp_path / "again.properties", run.configuration(tmp_path / "lake")
    )
    assert [table for table in check_tables(run, properties) if table.differences] == []
