"""Where a pipeline stands and why: idle, behind, waiting, stopped, held by another run."""

from __future__ import annotations

import shutil
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest

import lakeingest
from lakeingest.apply.factory import open_ledger
from lakeingest.apply.inspect.explain import Explanation, State
from tests.forms import with_all
from tests.logs.shop import Shop, row

A, B = "public.a", "public.b"


def id_of(number: int) -> str:
    """Return the id of a transaction."""
    return f"{number}:{1000 * number + 100}"


def explained(shop: Shop, **settings: str) -> Explanation:
    """Explain the pipeline as it is now; nothing may change."""
    before = sorted(shop.lake.rglob("*"))
    explanation = lakeingest.explain(shop.spark, shop.configured(**settings))
    assert sorted(shop.lake.rglob("*")) == before
    return explanation


@pytest.fixture
def shop(begun: Shop, tmp_path: Path) -> Shop:
    """Two transactions are published, in a lake that all share, with a log of its own."""
    log = deepcopy(begun.log)
    log.folder = tmp_path / "log"
    return replace(begun, log=log)


def test_waiting_for_an_end_and_then_behind(shop: Shop) -> None:
    shop.log.begin(id_of(3))
    shop.log.rows(id_of(3), [row(A, 3, 1, 1, 2)])
    explanation = explained(shop)
    assert explanation.state is State.WAITING
    assert explanation.reasons == (
        "Transaction 3 is open: rows of it are there, and its END is not. It waits until the "
        "connector sends the END.",
    )
    waits = {"transaction": "3", "reason": "rows of it are there, and its END is not"}
    assert explanation.facts["waits_for"] == waits
    shop.log.end(id_of(3), {A: 1})
    shop.log.transaction(id_of(4), row(A, 4, 1, 1, 3))
    explanation = explained(shop, commit_max_transactions="1")
    assert explanation.state is State.BEHIND
    assert explanation.reasons == (
        "The next run publishes 2 transactions in 2 batches, and reads on from there.",
    )
    assert explanation.facts["events_ready"] == {A: 2}
    assert explanation.facts["records_waiting"] == {"w.public.a": 2}


def test_waiting_for_rows(shop: Shop) -> None:
    shop.log.begin(id_of(3))
    shop.log.rows(id_of(3), [row(A, 3, 1, 2, 20)])
    shop.log.end(id_of(3), {A: 1, B: 2})
    shop.log.transaction(id_of(4), row(A, 4, 1, 3, 30))
    explanation = explained(shop)
    # A recording gets no more records, so a run of it does not wait.
    assert (explanation.state, explanation.exit_code) == (State.STOPPED, 65)
    assert explanation.facts["transactions_waiting"] == 2
    waits = explanation.facts["waits_for"]
    assert isinstance(waits, dict)
    assert (waits["transaction"], waits["table"]) == (id_of(3), B)
    assert (waits["rows_counted"], waits["rows_there"]) == (2, 0)


@with_all
def test_stopped_by_data(shop: Shop) -> None:
    shop.log.raw(A, {"id": 2}, b"\xff\xfe")
    shop.log.transaction(id_of(3), row(B, 3, 1, 2, 20))
    explanation = explained(shop)
    assert (explanation.state, explanation.exit_code) == (State.STOPPED, 65)
    assert explanation.reasons[0].startswith("A run would stop with exit code 65: ")


def test_stopped_by_what_only_the_batch_shows(shop: Shop) -> None:
    shop.log.declared = False
    shop.log.transaction(id_of(3), row("public.new", 3, 1, 1, 1))
    explanation = explained(shop, types_guess="stop")
    assert (explanation.state, explanation.exit_code) == (State.STOPPED, 78)
    assert "lakeingest.table.public.new.schema=" in explanation.reasons[0]


def test_idle_and_then_held_by_another_run(shop: Shop, tmp_path: Path) -> None:
    explanation = explained(shop)
    assert (explanation.state, explanation.exit_code) == (State.IDLE, 0)
    assert (explanation.reasons, explanation.facts["batch"]) == (("Everything is applied.",), 1)
    shutil.copytree(shop.lake, tmp_path / "lake")
    copied_shop = replace(shop, lake=tmp_path / "lake")
    ledger = open_ledger(shop.spark, copied_shop.configured(), "another")
    ledger.claim(ledger.head())
    explanation = explained(copied_shop)
    assert explanation.state is State.IDLE
    assert "holds the lake: it is at work, or it was killed" in explanation.reasons[-1]
