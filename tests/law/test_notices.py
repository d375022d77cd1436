"""Each protection switched off in turn: the oracle must notice, else the tests prove nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeingest.apply.batch import table_part
from lakeingest.payload import deferred_key_order, fold, key_changes
from lakeingest.plan.table import rows_above
from lakeingest.sink import merge_law
from lakeingest.sink.contract import Changeset
from lakeingest.sink.delta.sink import DeltaSink
from lakeingest.sink.merge_law import Clause, MergeLaw
from tests.law.conftest import Tables
from tests.law.history import any_order, in_order
from tests.law.judge import live, wrong_cases
from tests.law.oracle import Insert, Move, Shift, Update
from tests.law.steps import Steps

# Real Delta commits, some seconds each.
pytestmark = [pytest.mark.slow, pytest.mark.soak]

FEW = 40
ANY = [any_order(seed, 2) for seed in range(FEW)]
ANY_TRUNCATED = [any_order(seed, 2, truncate=True) for seed in range(FEW)]
IN_ORDER = [in_order(seed, 2) for seed in range(FEW)]


def test_the_oracle_notices_when_the_last_batch_wins_instead_of_the_last_position(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MergeLaw, "newer", property(lambda _: F.lit(True)))
    assert wrong_cases(tables(null_missing=True), ANY)


def test_the_oracle_notices_when_the_fold_takes_the_last_to_arrive(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    class ByArrival:
        def __getattr__(self, name: str) -> Any:
            return getattr(F, name)

        def max_by(self, value: Column, position: Column) -> Column:
            return F.last(F.when(position.isNotNull(), value), ignorenulls=True)

    monkeypatch.setattr(fold, "F", ByArrival())
    assert wrong_cases(tables(null_missing=True), ANY)


def test_the_oracle_notices_when_an_unavailable_value_overwrites_the_table(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    matched = MergeLaw.matched

    def whole_rows(self: MergeLaw) -> list[Clause]:
        return matched(replace(self, partial=False))

    monkeypatch.setattr(MergeLaw, "matched", whole_rows)
    assert wrong_cases(tables(null_missing=True), IN_ORDER)


def test_the_oracle_notices_when_hard_deletes_leave_no_tombstones(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    def all_of_it(self: DeltaSink, changeset: Changeset, *_: object) -> Changeset:
        return changeset

    monkeypatch.setattr(DeltaSink, "_above_tombstones", all_of_it)
    assert wrong_cases(tables(hard=True, null_missing=True), ANY)


def test_the_oracle_notices_when_a_truncate_is_no_floor(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_part, "rows_above", lambda changes, _: rows_above(changes, ""))
    assert wrong_cases(tables(null_missing=True), ANY_TRUNCATED)


def test_the_oracle_notices_when_a_chain_of_key_changes_is_followed_only_once(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    hop: Callable[..., DataFrame] = key_changes.hop
    monkeypatch.setattr(
        key_changes, "hop", lambda *args: hop(*args).withColumn("ended", F.lit(True))
    )
    steps = Steps(Insert(1, {"body": "first"}), Move(1, 2), Move(2, 3))
    table = tables(null_missing=True)()
    table.one(steps.sent(1, 2, 3))
    assert live(table) != {0: steps.source.rows}


def test_the_oracle_notices_when_rows_that_pass_one_another_are_taken_by_position(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deferred_key_order, "in_order", lambda decoded, *_: decoded)
    steps = Steps(Insert(1, {"n": 1}), Insert(2, {"n": 2}), Shift((Move(1, 2), Move(2, 3))))
    table = tables(whole=True)()
    table.one(steps.sent(1, 2, 3))
    assert live(table) != {0: steps.source.rows}


def test_without_the_guard_an_update_with_nothing_before_it_would_be_stored(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge_law, "refuse_missing", lambda positions, _: positions)
    table = tables()()
    table.one(Steps(Insert(1, {"body": "first"}), Update(1, {"n": 2})).sent(2))
    (row,) = table.head().collect()
    assert row["body"] is None
