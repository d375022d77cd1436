from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.oracles.final import disagreements
from tests.oracles.live import live_oracle
from tests.rig.fixtures import skips_without_packages
from tests.workloads.crew import Pace
from tests.workloads.places import new_source, server_of
from tests.workloads.sysbench_program import SysbenchProgram

pytestmark = pytest.mark.slow


def test_the_real_sysbench_keeps_its_rows_at_every_commit_through_a_kill(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server = server_of("mariadb", request)
    source = new_source(server, "mariadb", "program")
    workload = SysbenchProgram(source, 1, Pace(per_second=200), rows=500)
    with skips_without_packages():
        workload.create()
    live = live_oracle(source, workload.captured, tmp_path)
    live.begin()
    workload.start()
    time.sleep(3)
    server.kill()
    server.start()
    time.sleep(1)
    counts = workload.stop()
    oracle = live.end()

    assert workload.violations() == []
    assert counts.committed > 100
    assert counts.steps["slice without an account"] == 1
    assert disagreements(oracle, live.totals) == []
    commits = oracle.commits
    assert commits is not None
    assert len(commits) - 1 >= counts.committed
    for totals in commits:
        assert {table["count"] for table in totals.values()} == {500}
        assert {table["sum_id"] for table in totals.values()} == {125_250}
