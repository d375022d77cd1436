"""Which ranges a window reads: pure, so hypothesis may try hundreds of backlogs."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame

from lakeingest.apply.window import prefetch
from lakeingest.apply.window.offset_ranges import WindowRanges, plan_window_ranges
from lakeingest.apply.window.prefetch import WindowReader
from lakeingest.apply.window.window import Bounds as WindowBounds
from lakeingest.errors import DataError, UnavailableError
from lakeingest.ledger.publication import Frontier
from lakeingest.source.contract import TopicPartition, Watermarks
from lakeingest.source.topics import missing_topic

ENDS = TopicPartition("px.transaction", 0)

BACKLOG = st.lists(st.integers(0, 5_000), min_size=1, max_size=12)
RECORDS = st.integers(50, 20_000)


@dataclass(frozen=True)
class Bounds:
    """Bounds of a log without its records: planning a reach must not read one."""

    marks: Mapping[TopicPartition, Watermarks]

    def topics(self) -> tuple[str, ...]:
        return tuple(sorted({place.topic for place in self.marks} - {ENDS.topic}))

    def watermarks(self, topics: Sequence[str]) -> Mapping[TopicPartition, Watermarks]:
        return {place: marks for place, marks in self.marks.items() if place.topic in topics}

    def read(self, _: object) -> DataFrame:
        raise AssertionError

    def close(self) -> None:
        """Nothing to release."""


class Log(Bounds):
    """A log that has lost nothing: how far its ENDs and its data go."""

    def __init__(self, ends: int, data: Mapping[TopicPartition, int]) -> None:
        highs = {ENDS: ends, **data}
        super().__init__({place: Watermarks(0, high) for place, high in highs.items()})


class TwoPartitions(Log):
    """A log whose transaction topic has lost the order of commits."""

    def watermarks(self, topics: Sequence[str]) -> Mapping[TopicPartition, Watermarks]:
        return {TopicPartition(topic, n): Watermarks(0, 9) for topic in topics for n in range(2)}


def reach_of(backlog: Sequence[int], records: int, ends: int = 1_000) -> WindowRanges:
    data = {TopicPartition(f"px.{n % 3}", n): high for n, high in enumerate(backlog)}
    return plan_window_ranges(Log(ends, data), ENDS.topic, Frontier(), records)


def test_a_transaction_topic_with_two_partitions_is_refused() -> None:
    with pytest.raises(DataError, match=r"'px\.transaction' has 2 partitions"):
        plan_window_ranges(TwoPartitions(9, {}), ENDS.topic, Frontier(), 100)


@given(BACKLOG, RECORDS)
def test_a_window_holds_all_there_is_or_about_what_was_asked_for(
    backlog: list[int], records: int
) -> None:
    ranges = reach_of(backlog, records)
    read = sum(span.end - span.start for span in ranges.data)
    if sum(backlog) <= records:
        assert read == sum(backlog)
        assert not ranges.cut_short
    else:
        assert 0 < read <= records + max(records // 8, len(backlog))


@given(BACKLOG, RECORDS)
def test_partitions_are_read_to_about_the_same_part_of_what_waits(
    backlog: list[int], records: int
) -> None:
    ranges = reach_of(backlog, records)
    part = min(1.0, records / max(1, sum(backlog)))
    for span in ranges.data:
        waiting = backlog[span.partition]
        assert span.start == 0
        assert span.end <= waiting
        assert span.end >= int(waiting * part)
        whole = TopicPartition(span.topic, span.partition) not in ranges.cut_short
        assert whole == (span.end == waiting)
        if span.end > waiting * part + 1:
            assert span.end <= max(1, records // (8 * len(backlog)))


def test_a_partition_with_little_waiting_is_read_whole() -> None:
    ranges = reach_of([100_000, 3], 10_000)
    assert {span.partition: span.end for span in ranges.data} == {0: 9_999, 1: 3}


def test_the_transaction_topic_is_read_about_as_far_as_the_rows() -> None:
    ranges = reach_of([100_000], 20_000, ends=50_000)
    assert ranges.transactions is not None
    assert ranges.transactions.end == 12_500
    assert ranges.more_ends
    assert not ranges.whole


def test_a_short_transaction_topic_is_read_whole_whatever_the_rows_are() -> None:
    """A transaction larger than a window has one END, and nothing before it to be found by."""
    ranges = reach_of([1_000_000], 20_000, ends=900)
    assert ranges.transactions is not None
    assert ranges.transactions.end == 900
    assert not ranges.more_ends


@pytest.mark.parametrize(("endless", "ends"), [(False, 9), (True, 19)])
def test_what_is_committed_after_a_run_began_is_left_to_the_next_one_or_to_an_endless_run(
    monkeypatch: pytest.MonkeyPatch, ends: int, *, endless: bool
) -> None:
    """Else a run of a busy source would never end."""
    place, planned = TopicPartition("px.a", 0), []
    monkeypatch.setattr(prefetch, "read_window", lambda *given: planned.append(given[-1]))
    log: Any = SimpleNamespace(transaction_topic=ENDS.topic, spec=SimpleNamespace(whole=True))
    reader = WindowReader(log, WindowBounds(50, None), 100, 2**30, endless=endless)
    for end in (9, 19):
        log.source = Log(end, {place: end})
        reader.read(Frontier(), None)
    assert [window.transactions and window.transactions.end for window in planned] == [9, ends]
    assert [window.data[0].end for window in planned] == [9, 19]
    assert all(window.whole for window in planned)


def test_the_next_window_is_read_beside_the_writing_and_used_only_where_it_was_expected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[tuple[int, bool]] = []

    def read_window(_: object, frontier: Frontier, *__: object) -> None:
        begun.append((frontier.end_offset, threading.current_thread() is threading.main_thread()))

    planned = SimpleNamespace(nothing=False, records=1)
    monkeypatch.setattr(prefetch, "plan_window_ranges", lambda *_: planned)
    monkeypatch.setattr(prefetch, "read_window", read_window)
    monkeypatch.setattr(prefetch, "frontier_after", lambda _, index, __: Frontier(end_offset=index))
    log: Any = SimpleNamespace(source=None, transaction_topic="", spec=SimpleNamespace(whole=True))
    window: Any = SimpleNamespace(ranges=SimpleNamespace(whole=False), batch_stats=())
    reader = WindowReader(log, WindowBounds(50, None), 100, 2**30)
    reader.read(Frontier(), None)
    reader.begin_next(window, [4, 5], Frontier())
    reader.read(Frontier(end_offset=5), None)
    assert begun == [(-1, True), (5, False)]
    # Another driver has published since, or tables are ahead.
    monkeypatch.setattr(prefetch, "start_in_background", lambda _: pytest.fail)
    for stands, through in ((8, None), (7, 7)):
        reader.begin_next(window, [7], Frontier(end_offset=5))
        reader.read(Frontier(end_offset=stands), through)
    assert begun[2:] == [(8, True), (7, True)]


def test_the_edges_of_a_window_are_the_first_and_the_last_record_of_each_range() -> None:
    ranges = reach_of([1, 5, 0], 100, ends=3)
    first, last = (
        {(part.topic, part.partition, part.start, part.end) for part in edge}
        for edge in ranges.edges
    )
    assert first == {("px.transaction", 0, 0, 1), ("px.0", 0, 0, 1), ("px.1", 1, 0, 1)}
    assert last == {("px.transaction", 0, 2, 3), ("px.0", 0, 0, 1), ("px.1", 1, 4, 5)}


class WithoutEnds(Log):
    """A log of a connector that writes no transaction topic."""

    def watermarks(self, topics: Sequence[str]) -> Mapping[TopicPartition, Watermarks]:
        if ENDS.topic in topics:
            raise missing_topic(ENDS.topic, self.topics(), "the broker")
        return super().watermarks(topics)


def test_without_a_transaction_topic_the_error_says_what_the_connector_needs() -> None:
    with pytest.raises(UnavailableError) as error:
        plan_window_ranges(
            WithoutEnds(0, {TopicPartition("px.0", 0): 5}), ENDS.topic, Frontier(), 100
        )
    assert "'px.transaction' does not exist in the broker" in str(error.value)
    assert "provide.transaction.metadata=true" in str(error.value)
