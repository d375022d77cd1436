"""When the initial snapshot is over: topics keep no order between one another."""

from __future__ import annotations

from dataclasses import replace

from lakeingest.apply.window.contents import Contents, Portion
from lakeingest.apply.window.initial_snapshot import Phase, awaited, phase_after, proven_by_marks
from lakeingest.apply.window.offset_ranges import WindowRanges
from lakeingest.frame_schemas import Kind
from lakeingest.ledger.publication import Frontier
from lakeingest.source.contract import OffsetRange, TopicPartition

ALL_HEARD = WindowRanges(None, (), frozenset())
ONE_SILENT = WindowRanges(None, (), frozenset(), frozenset({"t.public.documents"}))


def rows(table: str, *marks: str) -> Portion:
    where = TopicPartition(f"t.public.{table}", 0)
    return Portion(where, f"public.{table}", Kind.SNAPSHOT, 5, 0, "0", 0, frozenset(marks))


def streamed(table: str) -> Portion:
    where = TopicPartition(f"t.public.{table}", 0)
    return Portion(where, f"public.{table}", Kind.ROW, 5, 9, "1", 0, frozenset())


CLOSED = rows("a", "true", "last_in_data_collection")


def judged(
    *portions: Portion, ranges: WindowRanges = ALL_HEARD, final: bool = False, any_end: bool = False
) -> Phase:
    return phase_after(Contents(portions), ranges, Frontier(), any_end=any_end, final=final)


def test_the_last_marker_with_every_table_closed_completes_it() -> None:
    first, last = rows("a", "true", "last_in_data_collection"), rows("b", "true", "last")
    assert judged(first, last) is Phase.LOADED
    assert judged(first, last, ranges=ONE_SILENT) is Phase.LOADED


def test_the_last_marker_alone_does_not_while_another_table_is_open() -> None:
    assert judged(rows("a", "true"), rows("b", "true", "last")) is Phase.LOADING


def test_a_first_table_of_one_row_is_closed_by_the_mark_that_begins_it() -> None:
    last = rows("b", "true", "last")
    assert judged(rows("a", "first"), last) is Phase.LOADED
    # More rows of it came, the one that ends it did not.
    assert judged(rows("a", "first", "true"), last) is Phase.LOADING


def test_a_transaction_that_is_announced_early_does_not_complete_it() -> None:
    # The transaction topic was copied before the rows: its ENDs tell nothing of other topics.
    assert judged(CLOSED, ranges=ONE_SILENT, any_end=True) is Phase.LOADING
    assert judged(CLOSED, streamed("a"), ranges=ONE_SILENT) is Phase.LOADING


def test_streaming_completes_it_where_the_last_table_was_empty() -> None:
    assert judged(CLOSED, any_end=True) is Phase.LOADED
    assert judged(CLOSED) is Phase.LOADING


def test_a_recording_that_gets_no_more_records_need_not_be_heard_in_every_topic() -> None:
    assert judged(CLOSED, ranges=ONE_SILENT, final=True, any_end=True) is Phase.LOADED


def test_rows_of_a_connector_without_markers_are_complete_when_something_streamed() -> None:
    assert judged(rows("a", "true"), any_end=True) is Phase.LOADED
    assert judged(rows("a", "true")) is Phase.LOADING


LOADED = (rows("a", "first", "last_in_data_collection"), rows("b", "true", "last"))
BOTH_READ = WindowRanges(
    None, (OffsetRange("t.public.a", 0, 0, 5), OffsetRange("t.public.b", 0, 0, 5)), frozenset()
)


def proven(*portions: Portion, ranges: WindowRanges = BOTH_READ, later: str | None = None) -> bool:
    topics = ["t.public.a", "t.public.b", *([f"t.public.{later}"] if later else [])]
    return proven_by_marks(Contents(portions), ranges, topics)


def test_end_marks_prove_a_snapshot_whole_where_each_topic_has_one_partition() -> None:
    assert proven(*LOADED)
    assert not proven(*LOADED, ranges=replace(BOTH_READ, unordered=frozenset({"t.public.b"})))


def test_end_marks_prove_nothing_while_a_topic_has_no_record_or_was_only_just_made() -> None:
    assert not proven(*LOADED, ranges=replace(BOTH_READ, silent=frozenset({"t.public.c"})))
    assert not proven(*LOADED, later="c")


def test_a_lone_first_row_does_not_prove_that_its_table_is_whole() -> None:
    assert not proven(rows("a", "first"), rows("b", "true", "last"))
    assert not proven(rows("a", "first", "last_in_data_collection"), rows("b", "true"))


def test_a_warning_names_what_the_snapshot_waits_for() -> None:
    several = replace(BOTH_READ, unordered=frozenset({"t.public.b"}))
    text = awaited(Contents(LOADED), several, Phase.LOADED)
    assert text is not None
    assert "'t.public.b'" in text
    text = awaited(Contents((rows("a", "true"), rows("b", "last"))), BOTH_READ, Phase.LOADING)
    assert text is not None
    assert "'public.a'" in text
    assert awaited(Contents((streamed("a"),)), BOTH_READ, Phase.LOADING) is None
