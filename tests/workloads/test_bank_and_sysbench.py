from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.oracles.final import disagreements
from tests.oracles.live import live_oracle
from tests.workloads.bank import bank
from tests.workloads.crew import Pace
from tests.workloads.places import FAMILIES, new_source, server_of
from tests.workloads.session import Session
from tests.workloads.source import Family, Source, within
from tests.workloads.sysbench import Sysbench
from tests.workloads.workload import Workload

pytestmark = pytest.mark.slow

Make = Callable[[Source, int, Pace], Workload]

BOTH = pytest.mark.parametrize("make", [bank, Sysbench])


@BOTH
@FAMILIES
def test_invariants_hold_at_any_moment_and_the_oracle_saw_every_commit(
    make: Make, family: Family, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    source = new_source(server_of(family, request), family, "steady")
    workload = make(source, 1, Pace(per_second=200))
    workload.create()
    live = live_oracle(source, workload.captured, tmp_path)
    live.begin()
    workload.start()
    end = time.monotonic() + 2
    while time.monotonic() < end:
        assert workload.violations() == []
        live.follow()
    counts = workload.stop()
    oracle = live.end()

    assert workload.violations() == []
    assert counts.committed > 50
    assert _witness(source) == counts.committed + counts.found
    assert disagreements(oracle, live.totals) == []
    commits = oracle.commits
    assert commits is not None
    assert len(commits) - 1 == counts.committed + counts.found
    assert [n["witness"]["sum_n"] for n in commits] == list(range(len(commits)))


@BOTH
@FAMILIES
def test_a_number_of_transactions_is_done_though_the_server_is_killed(
    make: Make, family: Family, request: pytest.FixtureRequest
) -> None:
    server = server_of(family, request)
    source = new_source(server, family, "killed")
    workload = make(source, 2, Pace(transactions=600, per_second=300))
    workload.create()
    workload.start()
    time.sleep(0.7)
    server.kill()
    server.start()
    counts = workload.finish(60)

    assert counts.reconnects > 0
    assert workload.violations() == []
    assert _witness(source) == counts.committed + counts.found >= 590


@pytest.mark.parametrize(
    ("make", "damage"),
    [
        (bank, "UPDATE pgbench_tellers SET tbalance = tbalance + 1 WHERE tid = 1"),
        (bank, "UPDATE witness SET n = n + 1 WHERE client = 0"),
        (Sysbench, "DELETE FROM sbtest2 WHERE id = 7"),
        (Sysbench, "UPDATE sbtest2 SET id = 0 WHERE id = 7"),
    ],
)
def test_a_broken_invariant_is_seen(
    make: Make, damage: str, request: pytest.FixtureRequest
) -> None:
    source = new_source(server_of("postgresql", request), "postgresql", "broken")
    workload = make(source, 3, Pace(transactions=20))
    workload.create()
    assert workload.violations() == []

    def do(session: Session) -> None:
        session.execute(damage)

    within(source, do)
    assert len(workload.violations()) == 1


def _witness(source: Source) -> int:
    found: list[int] = []

    def read(session: Session) -> None:
        found.append(int(session.value("SELECT sum(n) FROM witness")))

    within(source, read)
    return found[0]
