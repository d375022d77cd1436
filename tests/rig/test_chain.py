from __future__ import annotations

from pathlib import Path

import pytest

from tests.rig.arrived import arrived
from tests.rig.chain import Chain
from tests.rig.connectors import Capture
from tests.rig.fixtures import skips_without_packages

pytestmark = [pytest.mark.slow, pytest.mark.kafka]


def test_chain_with_exactly_once_brings_a_commit_and_tells_how_long_each_step_took(
    tmp_path: Path,
) -> None:
    with skips_without_packages(), Chain(tmp_path, postgres=True, exactly_once=True) as chain:
        chain.postgres.create_database("shop")
        with chain.postgres.connect("shop") as connection:
            connection.execute("CREATE TABLE orders (id INT PRIMARY KEY)")
        once = {"exactly.once.support": "required"}
        chain.capture_postgres("shop", "shop", Capture("shop", "public.orders", more=once))
        with chain.postgres.connect("shop") as connection:
            connection.execute("INSERT INTO orders VALUES (1)")
        arrived(chain.broker.bootstrap, "shop.public.orders", 1)
        processes = [chain.postgres.pid, chain.broker.pid, chain.connect.pid]
    print({step: round(seconds, 1) for step, seconds in chain.seconds.items()})
    assert {"start PostgresServer", "connector shop", "stop"} < set(chain.seconds)
    assert not any(Path(f"/proc/{pid}").exists() for pid in processes)
