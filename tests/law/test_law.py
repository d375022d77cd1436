"""The law of the merge payload (DESIGN §7): order, repetition and cuts do not matter.

Dozens of random histories share a table and go through the real way. A failure prints the seed
and the smallest history that shows it.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakeingest.sink.delta import rewrite
from tests.forms import HARD, SOFT
from tests.law.conftest import Tables
from tests.law.history import any_order, in_order
from tests.law.judge import check
from tests.sink.conftest import treat_as_large

# Real Delta commits, some seconds each.
pytestmark = pytest.mark.slow

HISTORIES = 80
ROUNDS = 2
TRANSACTIONS = 3
KILLED_AFTER = 1
TRUNCATED = 2
"""Rounds where a truncate is in the middle of them."""
GENERATED = [pytest.mark.soak, pytest.mark.generated]

# CI takes each way of a change with one kind of delete, in turns.


@pytest.mark.parametrize("rounds", [ROUNDS, pytest.param(ROUNDS + 1, marks=GENERATED)])
@SOFT
def test_every_batch_leaves_the_rows_of_the_source_whatever_is_repeated(
    tables: Tables, rounds: int, hard: bool
) -> None:
    """In CI without the last round, which only repeats: the test below and others have it."""
    cases = [in_order(seed, ROUNDS, shifts=True) for seed in range(HISTORIES)]
    cases = [replace(case, rounds=case.rounds[:rounds]) for case in cases]
    check(tables(hard=hard, whole=True), cases)


@HARD
def test_the_versions_of_transactions_go_on_after_a_kill_between_two_of_them(
    tables: Tables, hard: bool
) -> None:
    def dies(_path: str, commits: int) -> None:
        if commits == KILLED_AFTER:
            raise KeyboardInterrupt

    cases = [in_order(seed, TRANSACTIONS, shifts=True) for seed in range(HISTORIES)]
    check(tables(hard=hard, whole=True, each=True, interrupt=dies), cases)


# In CI hidden rows, the public API (both with hard deletes) and a truncate go through any order.
@pytest.mark.soak
@pytest.mark.generated
@HARD
def test_events_in_any_order_leave_the_rows_of_the_source(tables: Tables, hard: bool) -> None:
    cases = [any_order(seed, ROUNDS) for seed in range(HISTORIES)]
    check(tables(hard=hard, null_missing=True), cases)


@pytest.mark.soak
@SOFT
def test_the_law_holds_where_only_touched_files_are_written_again(
    tables: Tables, hard: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewrite, "WHOLE_BYTES", 0)
    cases = [any_order(seed, ROUNDS) for seed in range(HISTORIES)]
    check(tables(hard=hard, null_missing=True, hides=False), cases)


@pytest.mark.generated
@HARD
def test_the_law_holds_where_rows_are_hidden_and_small_files_are_many(
    tables: Tables, hard: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    treat_as_large(monkeypatch)
    # One more, for files enough to be joined.
    cases = [any_order(seed, ROUNDS + 1) for seed in range(HISTORIES)]
    check(tables(hard=hard, null_missing=True), cases)


@pytest.mark.generated
@HARD
def test_the_law_holds_through_the_public_api(tables: Tables, hard: bool) -> None:
    cases = [any_order(seed, ROUNDS) for seed in range(HISTORIES)]
    check(tables(hard=hard, null_missing=True, direct=False), cases)


@pytest.mark.soak
@SOFT
def test_a_truncate_is_a_floor_in_the_order_of_the_source(tables: Tables, hard: bool) -> None:
    cases = [in_order(seed, TRUNCATED, truncate=True) for seed in range(HISTORIES)]
    check(tables(hard=hard), cases)


@SOFT
def test_a_truncate_is_a_floor_in_any_order(tables: Tables, hard: bool) -> None:
    cases = [any_order(seed, TRUNCATED, truncate=True) for seed in range(HISTORIES)]
    check(tables(hard=hard, null_missing=True), cases)
