"""Whether a log is the one that was read before, and whole where it was not: bounds alone tell."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from lakeingest.apply.window.continuity import LogRules
from lakeingest.apply.window.next_frontier import frontier_after
from lakeingest.apply.window.offset_ranges import WindowRanges, plan_window_ranges
from lakeingest.apply.window.progress import frontier_behind
from lakeingest.apply.window.unreadable_records import Unreadable
from lakeingest.errors import AccessError, ConfigError, DataError
from lakeingest.ledger.publication import PUBLICATION, Frontier, Publication
from lakeingest.plan.batches import SNAPSHOT_BATCH
from lakeingest.source.contract import TopicPartition, Watermarks
from lakeingest.topic_names import TopicNames
from lakeingest.transaction.cut import Cut
from tests.apply.published import publication_of
from tests.apply.test_offset_ranges import ENDS, Bounds
from tests.apply.test_stall_detection import EMPTY

A0, A1, B0 = TopicPartition("px.a", 0), TopicPartition("px.a", 1), TopicPartition("px.b", 0)
NAMES = TopicNames("px")
RULES = LogRules(NAMES)
ACCEPTED = LogRules(NAMES, missing_head="accept")
WHOLE = {ENDS: Watermarks(0, 4), A0: Watermarks(0, 9), A1: Watermarks(0, 0), B0: Watermarks(0, 2)}
APPLIED = Frontier(
    end_offset=3, streaming=True, offsets={"px.a": {0: 9}, "px.b": {0: 2}}, read_offset=4
)


def ranges_of(
    changed: Mapping[TopicPartition, Watermarks | None],
    frontier: Frontier = APPLIED,
    rules: LogRules = RULES,
    transaction_topic: str | None = ENDS.topic,
) -> WindowRanges:
    marks = {place: watermarks for place, watermarks in {**WHOLE, **changed}.items() if watermarks}
    return plan_window_ranges(Bounds(marks), transaction_topic, frontier, 100, rules=rules)


def with_ids(**ids: str) -> dict[TopicPartition, Watermarks | None]:
    named = {f"px.{name}": id_ for name, id_ in ids.items()}
    return {at: replace(marks, topic_id=named.get(at.topic)) for at, marks in WHOLE.items()}


@pytest.mark.parametrize("transaction_topic", [ENDS.topic, None])
@pytest.mark.parametrize("observed", [False, True], ids=["broker", "recording"])
def test_a_first_reading_behind_the_head_stops(
    transaction_topic: str | None, observed: bool
) -> None:
    cut = {A1: Watermarks(5, 7, observed), B0: Watermarks(1, 2, observed)}
    with pytest.raises(DataError) as error:
        ranges_of(cut, Frontier(), transaction_topic=transaction_topic)
    text = str(error.value)
    assert "topic 'px.a' (table 'a') at offset 5 (partition 1); topic 'px.b' (table 'b')" in text
    assert "lakeingest.source.missing.head=accept" in text


def test_a_first_reading_is_whole_by_its_watermark_whatever_record_comes_first() -> None:
    assert ranges_of({}, Frontier()).accepted == ()


def test_a_partition_that_joins_later_behind_its_head_stops() -> None:
    with pytest.raises(DataError, match="topic 'px.c' .table 'c'. at offset 3 .partition 0."):
        ranges_of({TopicPartition("px.c", 0): Watermarks(3, 3)})


def test_a_transaction_topic_without_its_head_stops() -> None:
    with pytest.raises(DataError, match="'px.transaction' .the transaction topic.*ENDs of rows"):
        ranges_of({ENDS: Watermarks(2, 4)}, Frontier())


def test_what_was_read_before_may_lose_what_was_applied() -> None:
    """An adopted table begins at its checkpoint, which is progress like any other."""
    ranges = ranges_of({ENDS: Watermarks(4, 4), A0: Watermarks(9, 12), B0: Watermarks(2, 2)})
    assert [(part.topic, part.start, part.end) for part in ranges.data] == [("px.a", 9, 12)]
    with pytest.raises(DataError, match="offset 9 is wanted but is gone: the earliest there is 10"):
        ranges_of({A0: Watermarks(10, 12)})


def test_what_retention_removed_cannot_be_gone_on_behind() -> None:
    with pytest.raises(DataError, match="new snapshot of all tables.*another lakeingest.target"):
        ranges_of({A0: Watermarks(10, 12)})


REWOUND = LogRules(NAMES, rewound={"px.b": {0: 2}})
BEGUN = replace(APPLIED, offsets={"px.a": {0: 9}}, topic_ids={"px.b": "one"})
"""Table b is to be loaded anew; two records of its topic were read before."""


@pytest.mark.parametrize(
    "remade",
    [Watermarks(0, 5, topic_id="two"), Watermarks(0, 1), None],
    ids=["id", "short", "gone"],
)
def test_a_topic_that_is_read_again_must_be_the_one_that_was_read(
    remade: Watermarks | None,
) -> None:
    with pytest.raises(DataError, match=r"px\.b"):
        ranges_of({B0: remade}, BEGUN, replace(REWOUND, uncounted=("b",)))


@pytest.mark.parametrize("same", [Watermarks(0, 5, topic_id="one"), Watermarks(0, 5)])
def test_a_topic_that_is_read_again_is_read_from_its_beginning(same: Watermarks) -> None:
    ranges = ranges_of({B0: same}, BEGUN, REWOUND)
    assert [(part.topic, part.start, part.end) for part in ranges.data] == [("px.b", 0, 5)]


def test_a_reload_whose_topic_lost_its_head_may_be_undone() -> None:
    with pytest.raises(DataError, match="table 'b'. at offset 2.* reload CONFIG 'b' --undo"):
        ranges_of({B0: Watermarks(2, 5)}, BEGUN, REWOUND)
    with pytest.raises(DataError, match="A first reading begins behind the head"):
        ranges_of({B0: Watermarks(3, 5)}, BEGUN, REWOUND)
    accepted = replace(REWOUND, missing_head="accept")
    assert ranges_of({B0: Watermarks(2, 5)}, BEGUN, accepted).accepted


class Hidden(Bounds):
    """A log of which one topic is not listed; asked by name, it may not be described."""

    def topics(self) -> tuple[str, ...]:
        return tuple(topic for topic in super().topics() if topic != "px.b")

    def watermarks(self, topics: Sequence[str]) -> Mapping[TopicPartition, Watermarks]:
        if "px.b" in topics:
            raise AccessError(topics[0])
        return super().watermarks(topics)


def test_a_topic_that_may_not_be_described_any_more_is_not_taken_for_a_deleted_one() -> None:
    with pytest.raises(AccessError, match=r"px\.b"):
        plan_window_ranges(Hidden(WHOLE), ENDS.topic, APPLIED, 100, rules=RULES)


def test_a_missing_head_is_accepted_with_a_warning_and_begins_there() -> None:
    ranges = ranges_of({ENDS: Watermarks(2, 4), A1: Watermarks(5, 7)}, Frontier(), ACCEPTED)
    (warning,) = ranges.accepted
    assert "topic 'px.a' (table 'a') at offset 5 (partition 1)" in warning
    assert (ranges.heads, ranges.ends_head) == ({A1: 5}, 2)
    assert {part.start for part in ranges.data if part.partition == 1} == {5}
    assert ranges.transactions is not None
    assert ranges.transactions.start == 2


def test_a_head_that_was_accepted_is_not_missing_after_the_publication() -> None:
    """Also where no record follows it: an empty partition, a transaction topic without ENDs."""
    cut = {ENDS: Watermarks(2, 2), A0: Watermarks(3, 9, topic_id="one"), A1: Watermarks(5, 5)}
    ranges = ranges_of(cut, Frontier(), ACCEPTED)
    window = replace(EMPTY, ranges=ranges, snapshot=True)
    published = frontier_after(window, SNAPSHOT_BATCH, Frontier())
    assert published.topic_ids == {"px.a": "one"}
    assert ranges_of(cut, published).nothing
    alone = frontier_behind(window, Frontier(streaming=True, read_offset=2), 0)
    assert alone.topic_ids == {"px.a": "one"}
    assert ranges_of(cut, alone).nothing


def test_a_partition_that_begins_with_an_unreadable_record_is_not_read_yet() -> None:
    """Without transactions it is left out of the reading that publishes the others."""
    whole = ranges_of({A0: None, A1: None}, Frontier(), transaction_topic=None)
    ranges = replace(whole, cut_short=frozenset({A0}))
    records = {A0: Unreadable(A0, 0, 1, ""), B0: Unreadable(B0, 1, 1, "")}
    cuts = (Cut(0, 0, "", 0, 2),)
    window = replace(EMPTY, ranges=ranges, cuts=cuts, whole=False, unreadable=records)
    assert frontier_after(window, 1, Frontier()).offsets == {"px.b": {0: 1}}


def test_a_topic_with_another_id_stops_though_its_offsets_fit() -> None:
    ids = ranges_of(with_ids(a="one", transaction="t")).topic_ids
    assert ids == {"px.a": "one", "px.transaction": "t"}
    applied = APPLIED.with_topic_ids(ids)
    assert ranges_of(with_ids(a="one", transaction="t"), applied).nothing
    with pytest.raises(DataError, match="id of topic 'px.a' is another.*another lakeingest.target"):
        ranges_of(with_ids(a="two", transaction="t"), applied)
    with pytest.raises(DataError, match="id of topic 'px.transaction' is another"):
        ranges_of(with_ids(a="one", transaction="u"), applied)


def test_a_copy_with_the_same_offsets_is_accepted_and_its_id_kept() -> None:
    applied = APPLIED.with_topic_ids({"px.a": "one"})
    ranges = ranges_of(with_ids(a="two"), applied, LogRules(NAMES, new_topic_id="accept"))
    assert len(ranges.accepted) == 1
    assert applied.with_topic_ids(ranges.topic_ids).topic_ids == {"px.a": "two"}


def test_a_topic_without_an_id_is_compared_by_offsets_alone() -> None:
    assert ranges_of({}, APPLIED.with_topic_ids({"px.a": "one"})).nothing
    # A lake whose progress is from before ids were kept.
    assert ranges_of(with_ids(a="one")).nothing


def test_a_topic_that_was_never_read_may_be_made_again() -> None:
    frontier = replace(APPLIED, offsets={"px.b": {0: 2}}, topic_ids={"px.a": "one"})
    assert ranges_of(with_ids(a="two"), frontier).data


def test_a_partition_that_was_read_and_is_gone_stops() -> None:
    grown = replace(APPLIED, offsets={"px.a": {0: 9, 1: 3}, "px.b": {0: 2}})
    with pytest.raises(DataError, match="'px.a' has no partition 1 any more, but offset 3 of it"):
        ranges_of({A1: None}, grown)


def test_a_topic_that_was_read_and_is_gone_stops_unless_it_is_not_read_any_more() -> None:
    with pytest.raises(DataError, match="'px.b' .table 'b'. was read before and does not exist"):
        ranges_of({B0: None})
    for names in (TopicNames("px", ("px.a",)), TopicNames("px", retired=("px.b",))):
        assert ranges_of({B0: None}, rules=LogRules(names)).nothing


def test_rows_lie_in_any_order_in_several_partitions_and_in_a_recording_without_bounds() -> None:
    unnamed = {B0: Watermarks(0, 5, observed=True)}
    assert ranges_of({}, Frontier()).unordered == {"px.a"}
    assert ranges_of(unnamed, Frontier()).unordered == {"px.a", "px.b"}


def test_a_topic_that_is_gone_is_told_of_where_its_rows_need_not_arrive() -> None:
    read = replace(APPLIED, offsets={"px.a": {0: 9}, "px.My_Tab": {0: 2}})
    ranges = ranges_of({B0: None}, read, LogRules(NAMES, uncounted=("My Tab",)))
    assert ranges.nothing
    (warning,) = ranges.accepted
    assert "'px.My_Tab' does not exist any more; what it held and no run had read" in warning


@pytest.mark.parametrize(
    "again",
    [Watermarks(1, 5, topic_id="two"), Watermarks(5, 5, topic_id="two"), Watermarks(0, 1)],
    ids=["id", "emptied", "short"],
)
def test_a_topic_whose_rows_need_not_arrive_is_read_from_where_it_begins_when_made_again(
    again: Watermarks,
) -> None:
    read, rules = APPLIED.with_topic_ids({"px.b": "one"}), LogRules(NAMES, uncounted=("b",))
    ranges = ranges_of({B0: again}, read, rules)
    assert ranges.records == again.high - again.earliest
    (warning,) = ranges.accepted
    assert "'px.b' was deleted and made again, and is read from where it begins" in warning
    published = frontier_behind(replace(EMPTY, ranges=ranges), read, 0)
    assert published.offsets == {"px.a": {0: 9}, "px.b": {0: again.high}}
    assert ranges_of({B0: again}, published, rules).accepted == ()


def test_a_recording_may_have_no_record_of_a_partition_that_was_read() -> None:
    grown = replace(APPLIED, offsets={"px.a": {0: 9, 1: 3}, "px.b": {0: 2}})
    assert ranges_of({A0: Watermarks(9, 9, True), A1: None, B0: None}, grown).nothing


def test_ids_are_kept_with_the_progress_and_older_progress_is_read() -> None:
    applied = APPLIED.with_topic_ids({"px.a": "one"})
    text = Publication(frontier=applied).to_json("p", PUBLICATION)
    assert publication_of(text).frontier == applied
    older = json.loads(text)
    del older["frontier"]["topic_ids"]
    assert publication_of(json.dumps(older)).frontier == APPLIED


def test_an_offset_of_another_transaction_topic_stops() -> None:
    begun = replace(APPLIED, topic_ids={"px.a": "A", "px.old": "O"})
    with pytest.raises(ConfigError, match=r"another transaction topic than 'px.transaction'"):
        ranges_of(with_ids(a="A", transaction="T"), begun)
    frontier = replace(begun, topic_ids={**begun.topic_ids, "px.transaction": "T"})
    assert ranges_of(with_ids(a="A", transaction="T"), frontier).nothing
    # Nothing tells where a source gives no ids.
    assert ranges_of(with_ids(), begun).nothing
