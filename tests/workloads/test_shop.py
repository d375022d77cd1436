from __future__ import annotations

import time

import pytest

from tests.workloads.crew import Pace
from tests.workloads.places import FAMILIES, new_source, server_of
from tests.workloads.session import Session
from tests.workloads.shop import Schedule, Shop
from tests.workloads.shop.invariants import violations
from tests.workloads.shop.run import ALTER, DECK, GIANTS, SIGNAL_STEP
from tests.workloads.source import Family, Source, within

pytestmark = pytest.mark.slow

RARE = Schedule(giant_every=60, giant_rows=500, alter_at=150, signal_every=70)

CHANGES = {
    "insert",
    "update",
    "delete",
    "truncate",
    "key change",
    "key swap",
    "key used again",
    "unchanged toast",
    "unchanged toast in key change",
    "unchanged toast of same transaction",
    "insert update delete",
    "insert update delete insert",
    "delete and insert",
    "savepoint rollback",
    "empty",
    "read only",
    "excluded only",
    "excluded too",
    "giant",
    "long",
    "odd string",
    "null",
    "alter",
    "signal",
}


@FAMILIES
def test_a_short_run_does_every_kind_of_change_and_counts_it(
    family: Family, request: pytest.FixtureRequest
) -> None:
    source = new_source(server_of(family, request), family, "kinds")
    shop = Shop(source, 3, Pace(transactions=400), RARE)
    shop.create()
    shop.start()
    counts = shop.finish(60)

    steps = {step.name for step in (*DECK, *GIANTS, ALTER, SIGNAL_STEP)}
    assert steps <= set(counts.steps), f"never done: {steps - set(counts.steps)}"
    several = {"truncate of several"} if family == "postgresql" else set()
    assert set(counts.changes) >= CHANGES | several
    assert counts.rolled_back == counts.steps["rollback"] > 0
    assert "given up" not in counts.steps
    assert violations(source) == []
    assert _witnessed(source) == _witnessed_steps(counts.steps)


@FAMILIES
def test_the_invariants_hold_at_any_moment(family: Family, request: pytest.FixtureRequest) -> None:
    source = new_source(server_of(family, request), family, "moments")
    shop = Shop(source, 4, Pace(), Schedule(giant_every=100, giant_rows=300))
    shop.create()
    shop.start()
    looks = 0
    end = time.monotonic() + 4
    while time.monotonic() < end:
        assert violations(source) == []
        looks += 1
        time.sleep(0.02)
    counts = shop.stop()

    assert looks > 5
    assert counts.committed > 100
    assert violations(source) == []


def test_a_broken_invariant_is_seen(request: pytest.FixtureRequest) -> None:
    source = new_source(server_of("postgresql", request), "postgresql", "broken")
    shop = Shop(source, 5, Pace(transactions=60), Schedule(giant_every=None))
    shop.create()
    shop.start()
    shop.finish(60)
    assert violations(source) == []

    def damage(session: Session) -> None:
        session.execute("DELETE FROM order_lines WHERE order_id = (SELECT max(id) FROM orders)")
        session.execute("DELETE FROM txlog WHERE seq = 1")

    within(source, damage)
    assert len(violations(source)) == 3


def test_the_rate_is_kept(request: pytest.FixtureRequest) -> None:
    source = new_source(server_of("postgresql", request), "postgresql", "rate")
    shop = Shop(source, 6, Pace(per_second=40), Schedule(giant_every=None))
    shop.create()
    shop.start()
    time.sleep(3)
    counts = shop.stop()
    assert 60 < sum(counts.steps.values()) < 140


@FAMILIES
def test_the_clients_outlive_the_server_and_know_what_became_of_each_commit(
    family: Family, request: pytest.FixtureRequest
) -> None:
    server = server_of(family, request)
    source = new_source(server, family, "killed")
    shop = Shop(source, 8, Pace(), Schedule(giant_every=80, giant_rows=2_000))
    shop.create()
    shop.start()
    for _ in range(3):
        time.sleep(0.7)
        server.kill()
        server.start()
        assert violations(source) == []
    time.sleep(0.7)
    counts = shop.stop()

    assert counts.lost + counts.unknown >= 3
    assert counts.reconnects >= 3
    assert violations(source) == []
    # Equal only if every commit whose answer was lost was found out about.
    assert _witnessed(source) == _witnessed_steps(counts.steps)


def _witnessed(source: Source) -> dict[str, int]:
    found: dict[str, int] = {}

    def read(session: Session) -> None:
        for kind, number in session.rows("SELECT kind, count(*) FROM txlog GROUP BY kind"):
            found[kind] = number

    within(source, read)
    return found


def _witnessed_steps(steps: dict[str, int]) -> dict[str, int]:
    leaving = {step.name for step in (*DECK, *GIANTS, ALTER, SIGNAL_STEP) if step.witnessed}
    return {name: n for name, n in steps.items() if name in leaving}
