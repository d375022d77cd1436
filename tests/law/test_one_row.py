"""The law on one row: the cases that people ask about, each with the answer of the source."""

from __future__ import annotations

from itertools import chain

import pytest
from pyspark.sql import functions as F

from lakeingest.apply.spark_errors import spark_errors_of
from lakeingest.errors import DataError
from lakeingest.sink.delta.sink import DeltaSink
from tests.forms import HARD, further
from tests.law.conftest import Tables
from tests.law.history import COLLECTION
from tests.law.ingest import Ingest
from tests.law.judge import live
from tests.law.oracle import Delete, Insert, Move, Row, Shift, Truncate, Update
from tests.law.steps import Steps, position

# Real Delta commits, some seconds each.
pytestmark = pytest.mark.slow

FULL: Row = {"n": 1, "body": "first", "blob": b"first", "tags": ["first"]}


def rows(table: Ingest) -> dict[int, Row]:
    return live(table).get(0, {})


def everything(table: Ingest) -> list[str]:
    return sorted(row[0] for row in table.head().select(F.to_json(F.struct("*"))).collect())


def marks(table: Ingest) -> dict[str, str]:
    (row,) = table.head().select("_column_positions").collect()
    return dict(row[0] or {})


@pytest.mark.soak
@HARD
def test_the_same_batch_again_changes_no_row(tables: Tables, hard: bool) -> None:
    steps = Steps(
        Insert(1, FULL),
        Insert(2, FULL),
        Update(1, {"n": 5}),
        Move(2, 3),
        Delete(1),
        Insert(1, FULL),
    )
    table = tables(hard=hard)()
    table.one(steps.sent(1, 2))
    table.one(steps.sent(3, 4, 5))
    once = everything(table)
    table.one(steps.sent(3, 4, 5))
    assert everything(table) == once
    table.one(steps.sent(6))
    assert rows(table) == steps.source.rows


@pytest.mark.soak
@HARD
def test_a_late_older_event_does_not_bring_a_deleted_row_back(tables: Tables, hard: bool) -> None:
    steps = Steps(Insert(1, FULL), Update(1, {"n": 2}), Delete(1))
    table = tables(hard=hard, null_missing=True)()
    table.one(steps.sent(3))
    table.one(steps.sent(1))
    table.one(steps.sent(1, 2))
    assert rows(table) == {}


@pytest.mark.soak
def test_a_late_event_in_the_middle_supplies_what_a_newer_update_left_out(
    tables: Tables,
) -> None:
    later: Row = {"body": "second", "blob": b"second", "tags": ["second"]}
    steps = Steps(Insert(1, FULL), Update(1, later), Update(1, {"n": 3}))
    table = tables()()
    table.one(steps.sent(1))
    table.one(steps.sent(3))
    assert rows(table)[1]["body"] == "first"
    table.one(steps.sent(2))
    assert rows(table) == steps.source.rows == {1: {**later, "n": 3}}


@pytest.mark.soak
def test_values_that_an_update_leaves_out_are_filled_within_its_batch(tables: Tables) -> None:
    steps = Steps(Insert(1, FULL), Update(1, {"body": "second"}), Update(1, {"n": 3}))
    table = tables()()
    table.one(steps.sent(3, 1, 2))
    assert rows(table) == steps.source.rows == {1: {**FULL, "n": 3, "body": "second"}}


@pytest.mark.soak
def test_an_update_with_nothing_before_it_is_refused_and_nothing_is_committed(
    tables: Tables,
) -> None:
    steps = Steps(Insert(1, FULL), Insert(2, FULL), Update(1, {"n": 2}))
    table = tables()()
    before = table.one(steps.sent(2))
    with pytest.raises(DataError, match="no earlier value"), spark_errors_of(COLLECTION):
        table.one(steps.sent(3))
    assert isinstance(table.sink, DeltaSink)
    assert table.sink.state(COLLECTION) == before


@pytest.mark.soak
def test_a_missing_value_is_null_and_marked_until_a_late_older_event_brings_it(
    tables: Tables,
) -> None:
    steps = Steps(Insert(1, FULL), Update(1, {"n": 2}))
    table = tables(null_missing=True)()
    table.one(steps.sent(2))
    assert rows(table) == {1: {"n": 2, "body": None, "blob": None, "tags": None}}
    assert marks(table) == dict.fromkeys(("body", "blob", "tags"), "!")
    table.one(steps.sent(1))
    assert rows(table) == steps.source.rows
    assert marks(table) == dict.fromkeys(("body", "blob", "tags"), position(1))


@pytest.mark.soak
def test_a_missing_value_is_filled_when_the_older_event_comes_with_a_repeated_newer_one(
    tables: Tables,
) -> None:
    steps = Steps(Insert(1, FULL), Update(1, {"n": 2}))
    table = tables(null_missing=True)()
    table.one(steps.sent(2))
    table.one(steps.sent(1, 2))
    assert rows(table) == steps.source.rows


@pytest.mark.soak
@HARD
def test_a_swap_of_keys_carries_the_values_that_its_events_leave_out(
    tables: Tables, hard: bool
) -> None:
    two: Row = {"n": 2, "body": "second", "blob": b"second", "tags": ["second"]}
    swap = (Move(1, 9), Move(2, 1), Move(9, 2))
    steps = Steps(Insert(1, FULL), Insert(2, two), *swap)
    together, apart = tables(hard=hard)(), tables(hard=hard)()
    together.one(steps.sent(1, 2, 3, 4, 5))
    assert rows(together) == steps.source.rows == {1: two, 2: FULL}
    apart.one(steps.sent(1, 2))
    apart.one(steps.sent(3, 4, 5))
    assert rows(apart) == steps.source.rows


@pytest.mark.soak
@HARD
@pytest.mark.parametrize(
    "apart",
    [
        further(False, id="one batch"),
        pytest.param(True, id="two batches"),
    ],
)
def test_rows_that_pass_one_another_within_a_statement_all_stay(
    tables: Tables, hard: bool, apart: bool
) -> None:
    two: Row = {"n": 2, "body": "second", "blob": b"second", "tags": ["second"]}
    up, swap = Shift((Move(1, 2), Move(2, 3))), Shift((Move(2, 3), Move(3, 2)))
    steps = Steps(Insert(1, FULL), Insert(2, two), up, swap)
    table = tables(hard=hard, whole=True)()
    for batch in ((1, 2), (3,), (4,)) if apart else ((1, 2, 3, 4),):
        table.one(steps.sent(*batch))
    assert rows(table) == steps.source.rows == {2: two, 3: FULL}
    once = everything(table)
    table.one(steps.sent(3, 4))
    assert everything(table) == once


@pytest.mark.soak
def test_a_row_that_goes_on_to_a_third_key_in_its_transaction_leaves_the_second_one(
    tables: Tables,
) -> None:
    # The same events of key 2 as where a statement adds one to keys 1 and 2.
    steps = Steps(Insert(1, FULL), Move(1, 2), Move(2, 3), together=(2, 3))
    table = tables(whole=True)()
    table.one(steps.sent(1))
    table.one(steps.sent(2, 3))
    assert rows(table) == steps.source.rows == {3: FULL}


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
    table = tables(whole=True, ddl=f"h BIGINT, id BIGINT{more}, n BIGINT, body STRING")()
    # The second one has rows that pass one another, so it goes by every way.
    for batch in ((1, 2), (3, 4, 5)):
        table.one(steps.sent(*batch))
    left = table.head().where(~F.col("_deleted")).select("id", "n", "body").collect()
    assert sorted(map(tuple, left)) == [(1, 7, "first"), (3, 1, "first")]
    table.one(steps.sent(6))
    assert table.head().where(~F.col("_deleted")).isEmpty()


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
    table = tables(null_missing=True)()
    first = (used_again.sent(1), next_row.sent(1, 2, 3), of_unknown.sent(2, 3), moved_on.sent(1))
    table.one(chain(*first))
    assert live(table)[3] == {1: FULL}
    then = (used_again.sent(2, 4), next_row.sent(2, 3, 4), of_unknown.sent(4, 5), moved_on.sent(2))
    table.one(chain(*then))
    found = live(table)
    assert found[0][1]["body"] is None
    assert found[1] == next_row.source.rows
    assert found[2] == {2: {"n": 2, "body": None, "blob": None, "tags": None}}
    assert found[3] == {2: FULL}
    again = [*reversed(moved_on.sent(2)), *moved_on.sent(3)]
    table.one([*used_again.sent(3), *again])
    assert rows(table) == used_again.source.rows
    assert live(table)[3] == moved_on.source.rows == {3: FULL}


@pytest.mark.soak
def test_a_key_change_in_the_batch_that_brings_a_new_column_finds_its_values(
    tables: Tables,
) -> None:
    steps = Steps(Insert(1, FULL), Move(1, 2))
    table = tables()()
    table.one(steps.sent(1))
    table.columns(
        "h BIGINT, id BIGINT, n BIGINT, body STRING, blob BINARY, tags ARRAY<STRING>, note STRING"
    )
    table.one(steps.sent(2))
    assert rows(table) == steps.source.rows


@HARD
def test_a_truncate_sweeps_a_table_without_text_columns(tables: Tables, hard: bool) -> None:
    steps = Steps(Insert(1, FULL), Insert(2, FULL), Truncate(), Insert(2, FULL))
    table = tables(hard=hard, ddl="h BIGINT, id BIGINT, n BIGINT")()
    table.one(steps.sent(1, 2))
    table.one(steps.sent(3, 4))
    left = table.head().where(~F.col("_deleted")).select("id").collect()
    assert [row["id"] for row in left] == [2]
