"""Where a pipeline stands and why: idle, behind, waiting, stopped, held by another run."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import lakeingest
from lakeingest.apply.explain import Explanation, State
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


class Shop:
    """A log whose first transaction is in the lake, and what is explained of it."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self.lake = folder / "lake"
        self.log = WrittenLog(folder / "log", "postgresql")
        self.log.transaction(id_of(1), sent(A, 1, 10, 1), sent(B, 1, 11, 1))
        self.ingest()

    def ingest(self) -> None:
        """Apply what there is."""
        self.log.ingest(self._spark, self.lake)

    def explained(self, **settings: str) -> Explanation:
        """Explain the pipeline as it is now; nothing may change."""
        before = sorted(self.lake.rglob("*"))
        found = lakeingest.explain(self._spark, self.log.configured(self.lake, **settings))
        assert sorted(self.lake.rglob("*")) == before
        return found


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path) -> Shop:
    """The shop after its first run."""
    return Shop(spark, tmp_path)


def test_idle(shop: Shop) -> None:
    found = shop.explained()
    assert (found.state, found.reasons, found.exit_code) == (
        State.IDLE,
        ("Everything is applied.",),
        0,
    )
    assert found.facts["batch"] == 1


def test_behind(shop: Shop) -> None:
    for number in (2, 3):
        shop.log.transaction(id_of(number), sent(A, 1, number, number))
    found = shop.explained(commit_max_transactions="1")
    assert found.state is State.BEHIND
    assert found.reasons == (
        "The next run publishes 2 transactions in 2 batches, and reads on from there.",
    )
    assert found.facts["events_ready"] == {A: 2}
    assert found.facts["records_waiting"] == {"w.public.a": 2}
    shop.ingest()
    assert shop.explained().state is State.IDLE


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


def test_waiting_for_an_end(shop: Shop) -> None:
    shop.log.begin(id_of(2))
    shop.log.rows(id_of(2), [sent(A, 2, 20, 2)])
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
    assert shop.explained().state is State.BEHIND


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


def test_held_by_another_run(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.log.transaction(id_of(2), sent(A, 1, 20, 2))
    with monkeypatch.context() as killed:
        killed.setattr("lakeingest.ledger.delta.DeltaLedger.release", lambda *_: None)
        shop.ingest()
    found = shop.explained()
    assert found.state is State.IDLE
    assert "holds the lake: it is at work, or it was killed" in found.reasons[-1]
