"""A large initial snapshot is read once: single records show how far it reaches."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from lakeingest.apply.window import prefetch, snapshot_extent
from lakeingest.apply.window.offset_ranges import WindowRanges
from lakeingest.apply.window.snapshot_extent import records_of_snapshot
from lakeingest.apply.window.window import PipelineLog
from lakeingest.source.contract import OffsetRange, TopicPartition
from tests.apply.published import table
from tests.apply.test_offset_ranges import Log
from tests.apply.test_prefetch import Readings, record
from tests.apply.test_second_snapshot import row, snapshot
from tests.logs.written import WrittenLog

A, B = TopicPartition("px.a", 0), TopicPartition("px.b", 0)


@given(st.integers(1, 10**9), st.data())
def test_the_snapshot_is_read_to_its_end_and_little_further(high: int, data: st.DataObject) -> None:
    read = data.draw(st.integers(1, high))
    # The offset of the first streamed row; `high`: nothing was streamed yet.
    streamed = data.draw(st.integers(0, high))
    accuracy = data.draw(st.integers(1, high))
    probed_offsets: list[int] = []

    def first_streamed(_: object, probes: dict[TopicPartition, list[int]]) -> dict[object, int]:
        probed_offsets.extend(offset for offsets in probes.values() for offset in offsets)
        assert all(0 <= offset < high for offset in probed_offsets)
        return {
            place: min(offset for offset in offsets if offset >= streamed)
            for place, offsets in probes.items()
            if max(offsets) >= streamed
        }

    log = PipelineLog(Log(0, {A: high, B: 5}), None, None, None, None)  # type: ignore[arg-type]
    ranges = WindowRanges(
        None, (OffsetRange("px.a", 0, 0, read), OffsetRange("px.b", 0, 0, 5)), frozenset({A})
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshot_extent, "_first_streamed", first_streamed)
        records = records_of_snapshot(log, ranges, accuracy)
    assert list(records) == [A]
    past = min(streamed, high) + 1
    assert past <= records[A] <= max(past, read) + max(accuracy, 1_000) + 1
    assert len(probed_offsets) <= 100


@pytest.mark.soak
@pytest.mark.slow
def test_a_snapshot_larger_than_a_window_is_read_once(
    spark: SparkSession, log: WrittenLog, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.run = "one"
    many = {number: number for number in range(400)}
    snapshot(log, 100, {"b": many, "a": {1: 10, 2: 20}})
    log.transaction("9:610", row("a", 1, 31, 600))
    monkeypatch.setattr(prefetch, "SAMPLED_FROM", 0)
    monkeypatch.setattr(snapshot_extent, "_LEAST_ACCURACY", 1)
    readings = Readings()
    record(monkeypatch, readings)
    log.ingest(spark, lake, window_max_records="50", batch_max_events="50")
    assert len([*readings.ahead, *readings.waited]) == 1
    assert table(spark, lake, "public.a") == {1: 31, 2: 20}
    assert table(spark, lake, "public.b") == many
