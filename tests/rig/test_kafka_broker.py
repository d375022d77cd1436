from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from tests.rig import process
from tests.rig.arrived import arrived
from tests.rig.kafka import KafkaBroker
from tests.rig.replay import Record, send

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def test_port_that_is_taken_leads_to_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = process._free_ports
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        offers = iter([(port, *free(2)), free(3)])
        monkeypatch.setattr(process, "_free_ports", lambda _: next(offers))
        with KafkaBroker(tmp_path / "broker") as broker:
            assert not broker.bootstrap.endswith(f":{port}")
            broker.create_topics({"a": 2})
            pid = broker.pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_broker_that_is_killed_comes_back_on_its_ports_with_its_records(
    broker: KafkaBroker,
) -> None:
    broker.create_topics({"kept": 1})
    send([Record("kept", 0, 0, 0, None, b"kept", [])], broker.bootstrap)
    before, bootstrap = broker.pid, broker.bootstrap
    broker.kill()
    broker.start()
    assert broker.pid != before
    assert broker.bootstrap == bootstrap
    assert [record.value for record in arrived(broker.bootstrap, "kept", 1)] == [b"kept"]
