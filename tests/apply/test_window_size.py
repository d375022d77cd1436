"""How large windows are: what a backlog holds, or one of its transactions, does not decide it."""

from __future__ import annotations

from dataclasses import replace

from lakeingest.apply.window.contents import Contents, Portion
from lakeingest.apply.window.offset_ranges import GROWTH, Limits, WindowRanges, plan_window_ranges
from lakeingest.apply.window.size import Span, behind_the_first
from lakeingest.apply.window.window import Window
from lakeingest.frame_schemas import Kind
from lakeingest.ledger.publication import Frontier
from lakeingest.source.contract import OffsetRange, TopicPartition
from lakeingest.transaction.cut import End
from tests.apply.test_offset_ranges import ENDS, Log
from tests.apply.test_stall_detection import EMPTY

A, B = TopicPartition("px.a", 0), TopicPartition("px.b", 0)
BACKLOG = Log(80_000_000, {A: 60_000_000, B: 40_000_000})
SPAN = Span(250_000, 1 << 30)


def planned(span: Span) -> WindowRanges:
    return plan_window_ranges(BACKLOG, ENDS.topic, Frontier(), span.aimed, span.limits)


def ends_of(ranges: WindowRanges) -> int:
    return ranges.transactions.end - ranges.transactions.start if ranges.transactions else 0


def without_batch(ranges: WindowRanges, *kinds: str, in_the_way: End | None) -> Window:
    """Return a window that completed nothing: ``a`` was read to position 50, ``b`` to 80."""
    portions = [
        Portion(place, "t", kind, 1, 0, position, 0, frozenset())
        for place, position in ((A, "50"), (B, "80"))
        for kind in kinds
    ]
    contents = Contents(tuple(portions))
    return replace(EMPTY, ranges=ranges, contents=contents, waiting=1, in_the_way=in_the_way)


def test_a_transaction_larger_than_a_window_lets_only_its_own_partitions_grow() -> None:
    first = planned(SPAN)
    window = without_batch(first, Kind.ROW, in_the_way=End(9, 1_000_000, "70"))
    second = planned(SPAN.after_nothing(window, None))
    spans = {part.topic: part.end for part in first.data}
    grown = {part.topic: part.end for part in second.data}
    assert grown == {"px.a": spans["px.a"] + 1_000_000, "px.b": spans["px.b"]}
    assert ends_of(second) == ends_of(first) <= 500_002


def test_rows_that_came_again_at_least_double_what_is_read() -> None:
    first = planned(SPAN)
    window = without_batch(first, Kind.ROW, in_the_way=End(9, 3, "70"))
    assert behind_the_first(window) == {A: 2 * first.data[0].end}


def test_a_snapshot_larger_than_a_window_brings_no_more_ends_to_the_driver() -> None:
    span, ranges = SPAN, planned(SPAN)
    for _ in range(3):
        window = without_batch(ranges, Kind.SNAPSHOT, in_the_way=End(9, 3, "70"))
        span = span.after_nothing(window, None)
        ranges = planned(span)
        assert ends_of(ranges) <= 500_002
    assert ranges.records == GROWTH**3 * 250_000


def test_rows_that_are_nowhere_are_looked_for_without_more_ends() -> None:
    window = without_batch(planned(SPAN), Kind.ROW, in_the_way=End(9, 3, "40"))
    span = SPAN.after_nothing(window, None)
    assert (span.growth, span.ends_growth) == (GROWTH, 1)
    everything = replace(window, ranges=replace(window.ranges, cut_short=frozenset()))
    assert window.is_unfinished(None)
    assert everything.ranges.more_ends
    assert not everything.is_unfinished(None)


def test_tables_ahead_of_the_ledger_are_reached_whatever_it_takes() -> None:
    window = without_batch(planned(SPAN), Kind.ROW, in_the_way=End(9, 3, "70"))
    assert window.is_unfinished(600_000)
    span = SPAN.after_nothing(window, 600_000)
    assert (span.growth, span.ends_growth, span.further) == (GROWTH, GROWTH, None)


def test_large_records_make_a_window_of_fewer() -> None:
    sizes = {A: 100_000.0, B: 100.0}
    octets = sum(
        (part.end - part.start) * sizes[TopicPartition(part.topic, part.partition)]
        for part in planned(Span(250_000, 100 << 20, sizes=sizes)).data
    )
    assert 50 << 20 < octets < 110 << 20
    small = Log(10, {A: 100, B: 100})
    limits = Limits(octets=100 << 20, sizes=sizes)
    assert plan_window_ranges(small, ENDS.topic, Frontier(), 250_000, limits).whole


def test_a_window_that_is_too_large_by_one_partition_alone_is_cut_there_too() -> None:
    limits = Limits(octets=100 << 20, sizes={A: 1_000_000.0})
    ranges = plan_window_ranges(Log(10, {A: 10_000}), ENDS.topic, Frontier(), 250_000, limits)
    assert ranges.data == (OffsetRange("px.a", 0, 0, 104),)
