"""The law on one row: the cases that people ask about, each with the answer of the source."""

from __future__ import annotations

from itertools import chain

import pytest

from tests.forms import HARD
from tests.law.conftest import Tables
from tests.law.ingest import DDL
from tests.law.judge import live
from tests.law.oracle import Delete, Insert, Move, Row, Shift, Truncate, Update
from tests.law.steps import Steps

# Real Delta commits, some seconds each.
pytestmark = pytest.mark.slow

FULL: Row = {"n": 1, "body": "first", "blob": b"first", "tags": ["first"]}


def test_a_source_may_name_its_columns_as_our_frames_do(tables: Tables) -> None:
    names = (
        "key op position row event unavailable moved_from_row below within moved key_row value "
        "new_key at_key moved_at way ended since _k _p _m _at _old _from _to _sent _turn _under "
        "_first_op _link _slot_body _found_body _moved _deleted_at _last batch end_offset"
    )
    # A text may be left out, which makes plans larger: six of them are enough to be told apart.
    types = ["STRING" if place % 8 == 0 else "BIGINT" for place in range(len(names.split()))]
    more = "".join(f", {n} {type_}" for n, type_ in zip(names.split(), types, strict=True))
    up = Shift((Move(1, 2), Move(2, 3)))
    steps = Steps(
        Insert(1, FULL), Insert(2, FULL), up, Update(2, {"n": 7}), Move(2, 1), Truncate(), Delete(3)
    )
    table = tables(whole=True, hard=True, ddl=f"h BIGINT, id BIGINT{more}, n BIGINT, body STRING")()
    # The second one has rows that pass one another, so it goes by every way.
    for batch in ((1, 2), (3, 4, 5)):
        table.one(steps.sent(*batch))
    assert sorted(table.live("id", "n", "body")) == [(1, 7, "first"), (3, 1, "first")]
    # What comes again meets tombstones where rows are removed.
    for again in ((6,), (2, 4)):
        table.one(steps.sent(*again))
    assert table.live("id") == []


def test_no_value_is_taken_from_another_row_of_a_key_or_lost_with_a_repeated_key_change(
    tables: Tables,
) -> None:
    used_again = Steps(Insert(1, FULL), Delete(1), Insert(1, {"body": "new"}), Update(1, {"n": 2}))
    next_row = Steps(
        Insert(1, FULL), Move(1, 2), Insert(1, {"body": "other"}), Update(2, {"n": 7}), history=1
    )
    of_unknown = Steps(
        Insert(1, FULL),
        Insert(2, {"body": "dead"}),
        Update(1, {"n": 2}),
        Delete(2),
        Move(1, 2),
        history=2,
    )
    moved_on = Steps(Insert(1, FULL), Move(1, 2), Move(2, 3), history=3)
    over_newer = Steps(
        Insert(1, FULL), Insert(2, {"body": "gone"}), Delete(2), Move(1, 2), Move(2, 3), history=4
    )
    table = tables(null_missing=True)()
    first = (used_again.sent(1), next_row.sent(1, 2, 3), of_unknown.sent(2, 3), moved_on.sent(1))
    table.one(chain(*first, over_newer.sent(1, 2)))
    assert live(table)[3] == {1: FULL}
    then = (used_again.sent(2, 4), next_row.sent(2, 3, 4), of_unknown.sent(4, 5), moved_on.sent(2))
    table.one(chain(*then, over_newer.sent(3, 4, 5)))
    histories = live(table)
    assert histories[0][1]["body"] is None
    assert histories[1] == next_row.source.rows
    assert histories[2] == {2: {"n": 2, "body": None, "blob": None, "tags": None}}
    assert histories[3] == {2: FULL}
    assert histories[4] == over_newer.source.rows == {3: FULL}
    again = [*reversed(moved_on.sent(2)), *moved_on.sent(3)]
    # A new column in the batch of a key change.
    table.columns(f"{DDL}, note STRING")
    table.one([*used_again.sent(3), *again])
    histories = live(table)
    assert histories[0] == used_again.source.rows
    assert histories[3] == moved_on.source.rows == {3: FULL}


@HARD
def test_a_truncate_sweeps_a_table_without_text_columns(tables: Tables, hard: bool) -> None:
    steps = Steps(Insert(1, FULL), Insert(2, FULL), Truncate(), Insert(2, FULL))
    table = tables(hard=hard, ddl="h BIGINT, id BIGINT, n BIGINT")()
    table.one(steps.sent(1, 2))
    table.one(steps.sent(3, 4))
    assert table.live("id") == [(2,)]
