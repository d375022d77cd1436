"""Whatever is delivered, what is released is a commit prefix with all of its rows.

Hundreds of deliveries (see ``deliveries``) in one job: their transaction numbers, positions and
offsets never meet. Each protection is then taken away in turn, and the oracle must see it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from lakeingest.decode.encodings import Encodings
from lakeingest.engine.local_checkpoint import local_checkpoint
from lakeingest.plan import batches
from lakeingest.plan.end_positions import without_open_transactions
from lakeingest.plan.spec import PipelineSpec
from lakeingest.plan.window import is_counted, window_boundaries, window_changes, window_metadata
from lakeingest.transaction.completeness import (
    NO_WHOLE_INCARNATION,
    TOO_FEW_ROWS,
    incomplete_transactions,
    without_whole_incarnation,
)
from lakeingest.transaction.cut import End, cut, read_past
from tests.envelope.records import frame
from tests.transaction.deliveries import CASE, Delivery, deliveries

COUNT = 320
SEED = 20261124
SPEC = PipelineSpec("postgresql", Encodings())

SUMMARY = ("end_offset", "event_count", "end_position")
"""The fields of ``End``."""

NOT_LOOKED_AT = "a partition was not read past it"

Lacking = dict[int, set[str]]
"""Offset of an END -> why its transaction is not complete."""


class Planned:
    """What the plan found in all deliveries: ENDs in commit order, and what each one lacks."""

    def __init__(self, made: list[Delivery], ends: dict[int, list[int]], lacking: Lacking) -> None:
        self.made = made
        self.ends = ends
        self.lacking = lacking

    def released(self, delivery: Delivery, without: str = "") -> list[int]:
        """Return the ENDs before the first that lacks something, ``without`` one protection."""
        taken: list[int] = []
        for offset in self.ends.get(delivery.case, []):
            if self.lacking.get(offset, set()) - {without}:
                break
            taken.append(offset)
        return taken


def counted() -> Column:
    return is_counted(F.col("data_collection").isin("public.a", "public.b"), ())


NAMED, UNNAMED = "run ids", "no run ids"


@pytest.fixture(scope="module")
def plans(spark: SparkSession) -> dict[str, Planned]:
    """Both forms of each delivery, in one job: with ids of runs, and without."""
    named = deliveries(SEED, COUNT)
    unnamed = [replace(delivery, case=COUNT + delivery.case) for delivery in named]
    made = [*named, *unnamed]
    sent = (record for delivery in made for record in delivery.data(named=delivery.case < COUNT))
    data = frame(spark, sent)
    topic = frame(spark, (record for delivery in made for record in delivery.metadata()))
    changes = local_checkpoint(window_changes(data, SPEC))
    boundaries = window_boundaries(window_metadata(topic, SPEC), SPEC)
    ends = local_checkpoint(without_open_transactions(boundaries))
    short = incomplete_transactions(changes, ends, counted())
    lacking: Lacking = defaultdict(set)
    for row in short.unionByName(without_whole_incarnation(changes, ends, counted())).collect():
        lacking[row["end_offset"]].add(row["reason"])
    by_case: dict[int, list[End]] = defaultdict(list)
    for row in ends.select(*SUMMARY).orderBy("end_offset").collect():
        by_case[row[0] // CASE].append(End(*row))
    for delivery in made:
        seen = by_case[delivery.case]
        for end in seen[len(read_past(seen, delivery.passed())) :]:
            lacking[end.offset].add(NOT_LOOKED_AT)
    offsets = {case: [end.offset for end in seen] for case, seen in by_case.items()}
    return {NAMED: Planned(named, offsets, lacking), UNNAMED: Planned(unnamed, offsets, lacking)}


@pytest.fixture(params=[NAMED, UNNAMED])
def planned(plans: dict[str, Planned], request: pytest.FixtureRequest) -> Planned:
    return plans[request.param]


def transactions(delivery: Delivery, offsets: list[int]) -> list[int]:
    """Return which transactions these ENDs are of, looked up in the delivery itself."""
    return [delivery.visible[None][offset - delivery.case * CASE].transaction for offset in offsets]


def torn(planned: Planned, without: str = "") -> list[str]:
    """Return the deliveries of which something was released that is not whole."""
    return [
        f"case {delivery.case}: transaction {transaction}"
        for delivery in planned.made
        for transaction in transactions(delivery, planned.released(delivery, without))
        if not delivery.whole(transaction)
    ]


def test_what_is_released_is_a_prefix_of_the_commits(planned: Planned) -> None:
    for delivery in planned.made:
        released = transactions(delivery, planned.released(delivery))
        assert released == list(range(len(released))), f"case {delivery.case}"


def test_every_row_of_what_is_released_is_there(planned: Planned) -> None:
    assert torn(planned) == []


def test_everything_is_released_once_everything_is_there(planned: Planned) -> None:
    # COUNT is a multiple of 4, too.
    whole = [delivery for delivery in planned.made if delivery.case % 4 == 0]
    assert len(whole) == COUNT // 4
    for delivery in whole:
        released = transactions(delivery, planned.released(delivery))
        assert len(released) == len(delivery.history), f"case {delivery.case}"


def test_the_deliveries_hold_something_back_and_let_something_go(planned: Planned) -> None:
    held = [d for d in planned.made if len(planned.released(d)) < len(planned.ends.get(d.case, []))]
    free = [d for d in planned.made if planned.released(d)]
    assert len(held) > COUNT // 8
    assert len(free) > COUNT // 3


@pytest.mark.parametrize("protection", [TOO_FEW_ROWS, NOT_LOOKED_AT, NO_WHOLE_INCARNATION])
def test_without_any_one_protection_a_torn_transaction_is_released(
    planned: Planned, protection: str
) -> None:
    assert torn(planned, without=protection) != []


def in_batches(spark: SparkSession, delivery: Delivery, max_events: int) -> list[Any]:
    changes = window_changes(frame(spark, delivery.data()), SPEC)
    topic = frame(spark, delivery.metadata())
    ends = without_open_transactions(window_boundaries(window_metadata(topic, SPEC), SPEC))
    complete = [End(*row) for row in ends.select(*SUMMARY).orderBy("end_offset").collect()][:-1]
    cuts = list(cut(complete, max_events))
    rows = batches.in_batches(changes, ends, cuts, "", snapshot=False)
    return [(row["transaction_key"], row["batch"], cuts) for row in rows.collect()]


def test_each_row_goes_with_its_transactions_batch_and_the_rest_stays_pending(
    spark: SparkSession, plans: dict[str, Planned]
) -> None:
    planned = plans[NAMED]
    largest = max(planned.made[::4], key=lambda d: len(d.history) * 100 + len(d.rows_read()))
    rows = in_batches(spark, largest, 6)
    batches: dict[str, set[int | None]] = defaultdict(set)
    for key, batch, _ in rows:
        batches[key].add(batch)
    cuts = rows[0][2]
    assert len(cuts) > 1
    order = [str(largest.xid(n)) for n in range(len(largest.history))]
    for n, key in enumerate(order):
        if not largest.history[n].tables:
            continue
        (batch,) = batches[key]
        if n == len(order) - 1:
            assert batch is None
        else:
            offsets = planned.ends[largest.case]
            matches = [c.first_offset <= offsets[n] <= c.last_offset for c in cuts]
            assert batch == 1 + matches.index(True)
