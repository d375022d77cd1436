"""When the initial snapshot is over: topics keep no order between one another."""

from __future__ import annotations

from lakeingest.apply.contents import Contents, Portion
from lakeingest.apply.reach import Reach
from lakeingest.apply.window import Bounds, _snapshot
from lakeingest.ledger.publication import Frontier
from lakeingest.shape import Kind
from lakeingest.source.contract import TopicPartition

LIVE = Bounds(1000, 1000, None)
RECORDED = Bounds(1000, 1000, None, final=True)
ALL_HEARD = Reach(None, (), frozenset())
ONE_SILENT = Reach(None, (), frozenset(), frozenset({"t.public.documents"}))
NOT_YET, COMPLETE = (False, False), (True, True)


def rows(table: str, *marks: str) -> Portion:
    where = TopicPartition(f"t.public.{table}", 0)
    return Portion(where, f"public.{table}", Kind.SNAPSHOT, 5, 0, "0", 0, frozenset(marks))


def streamed(table: str) -> Portion:
    where = TopicPartition(f"t.public.{table}", 0)
    return Portion(where, f"public.{table}", Kind.ROW, 5, 9, "1", 0, frozenset())


def judged(
    *portions: Portion, reach: Reach = ALL_HEARD, bounds: Bounds = LIVE, any_end: bool = False
) -> tuple[bool, bool]:
    return _snapshot(Contents(portions), reach, Frontier(), bounds, any_end=any_end)


def test_the_last_marker_with_every_table_closed_completes_it() -> None:
    first, last = rows("a", "true", "last_in_data_collection"), rows("b", "true", "last")
    assert judged(first, last) == COMPLETE
    assert judged(first, last, reach=ONE_SILENT) == COMPLETE


def test_the_last_marker_alone_does_not_while_another_table_is_open() -> None:
    assert judged(rows("a", "true"), rows("b", "true", "last")) == NOT_YET


def test_a_transaction_that_is_announced_early_does_not_complete_it() -> None:
    # The transaction topic was copied before the rows: its ENDs tell nothing of other topics.
    closed = rows("a", "true", "last_in_data_collection")
    assert judged(closed, reach=ONE_SILENT, any_end=True) == NOT_YET
    assert judged(closed, streamed("a"), reach=ONE_SILENT) == NOT_YET


def test_streaming_completes_it_where_the_last_table_was_empty() -> None:
    closed = rows("a", "true", "last_in_data_collection")
    assert judged(closed, any_end=True) == COMPLETE
    assert judged(closed) == NOT_YET


def test_a_recording_that_gets_no_more_records_need_not_be_heard_in_every_topic() -> None:
    closed = rows("a", "true", "last_in_data_collection")
    assert judged(closed, reach=ONE_SILENT, bounds=RECORDED, any_end=True) == COMPLETE


def test_rows_of_a_connector_without_markers_are_complete_when_something_streamed() -> None:
    assert judged(rows("a", "true"), any_end=True) == COMPLETE
    assert judged(rows("a", "true")) == NOT_YET
