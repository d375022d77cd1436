from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from tests.rig import kafka
from tests.rig.kafka import KafkaBroker

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def test_port_that_is_taken_leads_to_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = kafka._free_ports
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        offers = iter([(port, *free()[1:]), free()])
        monkeypatch.setattr(kafka, "_free_ports", lambda: next(offers))
        with KafkaBroker(tmp_path / "broker") as broker:
            assert not broker.bootstrap.endswith(f":{port}")
            broker.create_topics({"a": 2})
            pid = broker.pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
