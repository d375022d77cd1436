"""Kafka Connect, one worker in distributed mode, with Debezium's connectors.

Distributed and not standalone: the worker that comes back after ``kill -9`` finds its connectors,
their offsets and their states in the broker, as one in production does, and goes on by itself.
Plugins are found by their manifests alone: to scan all jars, as Connect does by default, makes up
half of a start and more.

What happens after ``kill -9`` with the settings of ``connectors.py``, as seen once each with
Debezium 3.7 (PostgreSQL) and 3.5 (MariaDB) on Connect 4.3. The sources were quiet but for one
row after each kill; the seconds are those from the end of the part's start until this row was in
its topic:

- a database, down for 0 or 10 s: 1 to 2 s; for 40 s: 10 s. Debezium tries again inside its task, so
  **its status stays RUNNING all the time**, and RUNNING proves no connection.
- the broker, down for 0 or 20 s: 1 to 2 s. Connect may leave its group and join again; the task
  then starts anew and may send again what it sent after its last kept offset.
- Connect: 4 to 5 s. What was sent after the last kept offset (``flush_ms``) is sent again, unless
  ``exactly_once`` is on and the connector has ``exactly.once.support=required``.
- all of them at once: 6 s.
- frozen for 15 s instead of killed (broker, Connect, PostgreSQL): 1 s.

No connector ended FAILED in any of these; ``restart`` is for one that did for another reason.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.rig.jvm import classpath, java, logging
from tests.rig.plugins import (
    AVRO_CONVERTER,
    DEBEZIUM_MARIADB,
    DEBEZIUM_POSTGRES,
    avro_converter,
    debezium,
    link,
    worker_jars,
)
from tests.rig.process import Server

__all__ = ["ConnectError", "ConnectWorker"]

_HEAP_MB = 768
_RUNNING_SECONDS = 90.0
_QUIET = {
    # Debezium 3.7 on Connect 4.3 complains about its own metrics, many times a second.
    "org.apache.kafka.common.metrics": "ERROR",
    "io.debezium.pipeline.metrics": "ERROR",
}
_PROPERTIES = """\
bootstrap.servers={bootstrap}
group.id={group}
listeners=http://127.0.0.1:{port}
plugin.path={plugins}
plugin.discovery=service_load
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
topic.creation.enable=true
config.storage.topic={group}-configs
config.storage.replication.factor=1
offset.storage.topic={group}-offsets
offset.storage.replication.factor=1
offset.storage.partitions=1
status.storage.topic={group}-status
status.storage.replication.factor=1
status.storage.partitions=1
offset.flush.interval.ms={flush_ms}
session.timeout.ms=6000
heartbeat.interval.ms=1000
rebalance.timeout.ms=10000
scheduled.rebalance.max.delay.ms=0
exactly.once.source.support={exactly_once}
"""


class ConnectError(Exception):
    """Connect refused a request, or a connector failed; the message holds its reason or trace."""


class ConnectWorker(Server):
    """A worker on loopback.

    Args:
        folder: Where it keeps its settings and its log.
        bootstrap: The broker.
        avro: Whether it has the Avro converter, a large download.
        exactly_once: Whether source connectors may write in transactions.
        flush_ms: How often offsets are kept; what was sent since then is sent again after a kill.
    """

    def __init__(
        self,
        folder: Path,
        bootstrap: str,
        *,
        avro: bool = True,
        exactly_once: bool = False,
        flush_ms: int = 1000,
    ) -> None:
        super().__init__(folder)
        self._bootstrap = bootstrap
        self._avro = avro
        self._exactly_once = exactly_once
        self._flush_ms = flush_ms

    @property
    def url(self) -> str:
        """The address of the REST interface."""
        return f"http://127.0.0.1:{self.port}"

    def create_connector(self, name: str, config: Mapping[str, str]) -> None:
        """Create a connector; it starts some time later, see ``wait_running``."""
        self.request("POST", "/connectors", {"name": name, "config": dict(config)})

    def status(self, name: str) -> dict[str, Any]:
        """Return what Connect knows of a connector and its tasks."""
        found: dict[str, Any] = self.request("GET", f"/connectors/{name}/status")
        return found

    def wait_running(self, name: str, seconds: float = _RUNNING_SECONDS) -> None:
        """Wait until a connector and its task run.

        Raises:
            ConnectError: It failed, or did not run in time.
        """
        self._wait(name, {"RUNNING"}, seconds)

    def restart(self, name: str, seconds: float = _RUNNING_SECONDS) -> None:
        """Start a connector and its task again, failed or not, and wait until they run."""
        self.request("POST", f"/connectors/{name}/restart?includeTasks=true")
        self._wait(name, {"RUNNING"}, seconds, failed_is_final=False)

    def delete_connector(self, name: str, seconds: float = _RUNNING_SECONDS) -> None:
        """Delete a connector and its offsets: one made anew under this name begins at the start.

        What it left in its database stays: a replication slot and a publication.
        """
        self.request("PUT", f"/connectors/{name}/stop")
        self._wait(name, {"STOPPED"}, seconds, tasks=0, failed_is_final=False)
        self.request("DELETE", f"/connectors/{name}/offsets", seconds=seconds)
        self.request("DELETE", f"/connectors/{name}")

    def request(
        self, method: str, path: str, body: object = None, seconds: float = _RUNNING_SECONDS
    ) -> Any:
        """Ask the REST interface; a request that comes during a rebalance is asked again.

        Raises:
            ConnectError: It refused.
        """
        deadline = time.monotonic() + seconds
        while True:
            asked = urllib.request.Request(
                self.url + path,
                method=method,
                data=None if body is None else json.dumps(body).encode(),
                headers={"Content-Type": "application/json"},
            )
            try:
                with urllib.request.urlopen(asked, timeout=seconds) as answer:
                    said = answer.read()
                return json.loads(said) if said else None
            except urllib.error.HTTPError as error:
                with error:
                    reason = error.read().decode(errors="replace")
                busy = error.code in (409, 500) and "ebalanc" in reason
                if not busy or time.monotonic() > deadline:
                    message = f"{method} {path}: {error.code} {reason}"
                    raise ConnectError(message) from error
            time.sleep(0.2)

    def _wait(
        self,
        name: str,
        wanted: set[str],
        seconds: float,
        *,
        tasks: int = 1,
        failed_is_final: bool = True,
    ) -> None:
        deadline = time.monotonic() + seconds
        status: dict[str, Any] = {}
        while time.monotonic() < deadline:
            # A connector just created has no status for a moment.
            with suppress(ConnectError):
                status = self.status(name)
                parts = [status["connector"], *status["tasks"]]
                if len(status["tasks"]) == tasks and {part["state"] for part in parts} <= wanted:
                    return
                failed = [part for part in parts if part["state"] == "FAILED"]
                if failed and failed_is_final:
                    break
            time.sleep(0.1)
        message = f"{name} is not {', '.join(wanted)}: {json.dumps(status, indent=1)}"
        raise ConnectError(message.replace("\\n\\t", "\n  "))

    def fetch(self) -> None:
        worker_jars()
        debezium(DEBEZIUM_POSTGRES)
        debezium(DEBEZIUM_MARIADB)
        if self._avro:
            avro_converter()

    def _prepare(self) -> None:
        plugins = self._folder / "plugins"
        if not plugins.exists():
            link(debezium(DEBEZIUM_POSTGRES), plugins / "debezium-postgres")
            link(debezium(DEBEZIUM_MARIADB), plugins / "debezium-mariadb")
            if self._avro:
                link(avro_converter(), plugins / "avro", AVRO_CONVERTER)
        text = _PROPERTIES.format(
            bootstrap=self._bootstrap,
            # The worker's ports may change while it has not come up; its topics then do too.
            group=f"connect-{self.port}",
            port=self.port,
            plugins=plugins,
            flush_ms=self._flush_ms,
            exactly_once="enabled" if self._exactly_once else "disabled",
        )
        self._settings.write_text(text, encoding="utf-8")

    def _command(self) -> list[str]:
        program = [*java(_HEAP_MB, logging(self._folder, _QUIET)), *classpath(worker_jars())]
        main = "org.apache.kafka.connect.cli.ConnectDistributed"
        return [*program, main, str(self._settings)]

    def _answers(self) -> bool:
        # The interface listens before the worker is in its group; this asks for the latter.
        with suppress(ConnectError, OSError):
            self.request("GET", "/connectors", seconds=5.0)
            return True
        return False

    @property
    def _settings(self) -> Path:
        return self._folder / "connect.properties"
