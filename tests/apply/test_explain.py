"""Where a pipeline stands and why: idle, behind, waiting, stopped, held by another run."""

from __future__ import annotations

import shutil
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import lakeingest
from lakeingest.apply.factory import open_ledger
from lakeingest.apply.inspect.explain import Explanation, State
from tests.apply.written import Sent, WrittenLog

A, B = "public.a", "public.b"


def sent(collection: str, id_: int, v: int, number: int) -> Sent:
    """Return a change in the transaction of this number."""
    lsn = 100 * number + 50
    place = {"schema": "public", "table": collection.partition(".")[2], "txId": number, "lsn": lsn}
    return Sent(collection, id_, v, {**place, "sequence": f'["{100 * number}","{lsn}"]'}, "c")


def id_of(number: int) -> str:
    """Return the id of a transaction."""
    return f"{number}:{100 * number + 100}"


@dataclass(frozen=True)
class Shop:
    """A log whose first transaction is in the lake, and what is explained of it."""

    spark: SparkSession
    log: WrittenLog
    lake: Path

    def explained(self, **settings: str) -> Explanation:
        """Explain the pipeline as it is now; nothing may change."""
        before = sorted(self.lake.rglob("*"))
        found = lakeingest.explain(self.spark, self.log.configured(self.lake, **settings))
        assert sorted(self.lake.rglob("*")) == before
        return found


@pytest.fixture(scope="module")
def begun(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """The shop after its first run."""
    folder = tmp_path_factory.mktemp("begun")
    shop = Shop(spark, WrittenLog(folder / "log", "postgresql"), folder / "lake")
    shop.log.transaction(id_of(1), sent(A, 1, 10, 1), sent(B, 1, 11, 1))
    shop.log.ingest(spark, shop.lake)
    return shop


@pytest.fixture
def shop(begun: Shop, tmp_path: Path) -> Shop:
    """The same, with a log of its own."""
    log = deepcopy(begun.log)
    log.folder = tmp_path / "log"
    return replace(begun, log=log)


def test_waiting_for_an_end_and_then_behind(shop: Shop) -> None:
    shop.log.begin(id_of(2))
    shop.log.rows(id_of(2), [sent(A, 1, 2, 2)])
    found = shop.explained()
    assert found.state is State.WAITING
    assert found.reasons == (
        "Transaction 2 is open: rows of it are there, and its END is not. It waits until the "
        "connector sends the END.",
    )
    assert found.facts["waits_for"] == {
        "transaction": "2",
        "reason": "rows of it are there, and its END is not",
    }
    shop.log.end(id_of(2), {A: 1})
    shop.log.transaction(id_of(3), sent(A, 1, 3, 3))
    found = shop.explained(commit_max_transactions="1")
    assert found.state is State.BEHIND
    assert found.reasons == (
        "The next run publishes 2 transactions in 2 batches, and reads on from there.",
    )
    assert found.facts["events_ready"] == {A: 2}
    assert found.facts["records_waiting"] == {"w.public.a": 2}


def test_waiting_for_rows(shop: Shop) -> None:
    shop.log.begin(id_of(2))
    shop.log.rows(id_of(2), [sent(A, 2, 20, 2)])
    shop.log.end(id_of(2), {A: 1, B: 2})
    shop.log.transaction(id_of(3), sent(A, 3, 30, 3))
    found = shop.explained()
    # A recording gets no more records, so a run of it does not wait.
    assert (found.state, found.exit_code) == (State.STOPPED, 65)
    assert found.facts["transactions_waiting"] == 2
    waits = found.facts["waits_for"]
    assert isinstance(waits, dict)
    assert (waits["transaction"], waits["table"]) == (id_of(2), B)
    assert (waits["rows_counted"], waits["rows_there"]) == (2, 0)


def test_stopped_by_data(shop: Shop) -> None:
    shop.log.raw(A, {"id": 2}, b"\xff\xfe")
    shop.log.transaction(id_of(2), sent(B, 2, 20, 2))
    found = shop.explained()
    assert (found.state, found.exit_code) == (State.STOPPED, 65)
    assert found.reasons[0].startswith("A run would stop with exit code 65: ")


def test_stopped_by_what_only_the_batch_shows(shop: Shop) -> None:
    shop.log.declared = False
    shop.log.transaction(id_of(2), sent("public.new", 1, 1, 2))
    found = shop.explained(types_guess="stop")
    assert (found.state, found.exit_code) == (State.STOPPED, 78)
    assert "lakeingest.table.public.new.schema=" in found.reasons[0]


def test_idle_and_then_held_by_another_run(shop: Shop, tmp_path: Path) -> None:
    found = shop.explained()
    assert (found.state, found.reasons, found.exit_code) == (
        State.IDLE,
        ("Everything is applied.",),
        0,
    )
    assert found.facts["batch"] == 1
    shutil.copytree(shop.lake, tmp_path / "lake")
    held = replace(shop, lake=tmp_path / "lake")
    ledger = open_ledger(shop.spark, shop.log.configured(held.lake), "another")
    ledger.claim(ledger.head())
    found = held.explained()
    assert found.state is State.IDLE
    assert "holds the lake: it is at work, or it was killed" in found.reasons[-1]
