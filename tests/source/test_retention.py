"""What a topic may remove before a run reads it is said, once for all topics with the same risk."""

from __future__ import annotations

from lakeingest.source.retention import Retention, retention_risks


def test_topics_that_keep_their_records_for_a_day_or_for_ever_are_no_risk() -> None:
    assert list(retention_risks({"a": Retention(), "b": Retention(24), "c": Retention(168)})) == []


def test_a_compacted_topic_loses_parts_of_transactions() -> None:
    (risk,) = retention_risks({"shop.orders": Retention(compacted=True), "b": Retention()})
    assert risk.startswith("shop.orders is compacted: a transaction that lost a record")


def test_topics_that_keep_records_for_hours_are_named_together_with_the_shortest() -> None:
    topics = {
        name: Retention(hours) for name, hours in zip("abcde", (8, 1.5, 2, 3, 48), strict=True)
    }
    (risk,) = retention_risks(topics)
    assert risk.startswith("a, b, c and 1 more topics keep records for 1.5 hours only")
