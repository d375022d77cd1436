"""A Kafka broker of one node, started from Maven artifacts as a plain process.

Rejected: a container, which most places where these tests must run do not have; a fixed port, which
two runs on one machine would fight for; and to wait for a line in the log, which is printed before
clients are served. The port is picked by binding, and another one is tried if it is taken before
the broker gets it. Ready is when a client gets the broker's metadata.

The broker keeps its data in a folder of its own, so that ``kill`` and ``start`` again is a crash
and a restart. It is stopped by its own process id only.
"""

from __future__ import annotations

import atexit
import os
import signal
import socket
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType

import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from lakeingest.session.java import ensure_java
from tests.rig.broker_jars import broker_jars
from tests.rig.topics import create_topics

__all__ = ["PASSWORD", "USER", "KafkaBroker", "broker"]

USER = "lake"
PASSWORD = "hush-hush"

_READY_SECONDS = 120.0
_STOP_SECONDS = 20.0
_ATTEMPTS = 5
_JVM = ("-Xms256m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")

# Session timeout: a killed broker may come back only when its old session is over (default 9 s).
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port},\
LOGIN://127.0.0.1:{login_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},LOGIN://127.0.0.1:{login_port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,LOGIN:SASL_PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.login.plain.sasl.jaas.config=\
org.apache.kafka.common.security.plain.PlainLoginModule required user_{user}="{password}";
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
"""
_LOGGING = """\
<Configuration status="WARN">
  <Appenders><Console name="out"><PatternLayout pattern="%d %p %c %m%n"/></Console></Appenders>
  <Loggers><Root level="WARN"><AppenderRef ref="out"/></Root></Loggers>
</Configuration>
"""


class KafkaBroker:
    """A broker on loopback; a context manager that starts and stops it.

    Args:
        folder: Where it keeps its data and its log; empty, or a stopped broker's.

    Attributes:
        seconds_to_ready: How long the last start took, jars not counted.
    """

    def __init__(self, folder: Path) -> None:
        self.seconds_to_ready = 0.0
        self._folder = folder
        self._ports: tuple[int, int, int] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """The value of ``bootstrap.servers``."""
        assert self._ports is not None, "the broker was never started"
        return f"127.0.0.1:{self._ports[0]}"

    @property
    def bootstrap_with_login(self) -> str:
        """The listener that wants ``USER`` and ``PASSWORD`` (SASL_PLAINTEXT, PLAIN)."""
        assert self._ports is not None, "the broker was never started"
        return f"127.0.0.1:{self._ports[2]}"

    @property
    def pid(self) -> int:
        """The process id of the running broker."""
        assert self._process is not None, "the broker does not run"
        return self._process.pid

    def __enter__(self) -> KafkaBroker:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the broker and wait until it serves; after a stop, on the ports of before.

        Raises:
            RuntimeError: It did not come up; the message ends with its log.
        """
        assert self._process is None, "the broker runs already"
        jars = broker_jars()
        began = time.monotonic()
        # A broker that comes back keeps its ports: clients and its own quorum know it by them.
        attempts = 1 if self._ports else _ATTEMPTS
        for attempt in range(attempts):
            if self._ports is None or attempt:
                self._ports = _free_ports()
                self._configure(jars)
            self._launch(jars)
            if self._serves():
                self.seconds_to_ready = time.monotonic() - began
                return
            self.kill()
            if "Address already in use" not in self._log():
                break
        message = f"The broker did not come up: {self._log()[-3000:]}"
        raise RuntimeError(message)

    def stop(self) -> None:
        """Stop the broker in order, kill it if that takes too long. Safe to call twice."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
            self._forget()

    def kill(self) -> None:
        """End the broker as ``kill -9`` does; ``start`` brings it back with its data."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._forget()

    def admin(self) -> AdminClient:
        """Return a client that creates topics and removes records."""
        return AdminClient({"bootstrap.servers": self.bootstrap})

    def create_topics(self, partitions: dict[str, int]) -> None:
        """Create topics; see ``tests.rig.topics``."""
        create_topics(self.bootstrap, partitions)

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """Remove the records below an offset, as retention does."""
        admin = self.admin()
        for removed in admin.delete_records([TopicPartition(topic, partition, before)]).values():
            removed.result()

    def _configure(self, jars: list[Path]) -> None:
        assert self._ports is not None
        self._folder.mkdir(parents=True, exist_ok=True)
        port, controller_port, login_port = self._ports
        text = _PROPERTIES.format(
            port=port,
            controller_port=controller_port,
            login_port=login_port,
            user=USER,
            password=PASSWORD,
            data=self._folder / f"data-{port}",
        )
        (self._folder / "server.properties").write_text(text, encoding="utf-8")
        (self._folder / "log4j2.xml").write_text(_LOGGING, encoding="utf-8")
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # An id that starts with a dash would be taken for an option.
        formatting = [*self._java(jars, "kafka.tools.StorageTool"), "format"]
        formatting += ["--config", str(self._folder / "server.properties")]
        formatting += [f"--cluster-id=A{cluster[1:]}"]
        run = subprocess.run(formatting, capture_output=True, text=True, check=False)
        if run.returncode:
            message = f"The broker's storage was not formatted: {run.stdout}{run.stderr}"
            raise RuntimeError(message)

    def _launch(self, jars: list[Path]) -> None:
        with (self._folder / "broker.log").open("wb") as log:
            self._process = subprocess.Popen(
                [*self._java(jars, "kafka.Kafka"), str(self._folder / "server.properties")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Ctrl-C is for the test, which then stops the broker in order.
                start_new_session=True,
            )
        atexit.register(self.kill)

    def _java(self, jars: list[Path], main: str) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={self._folder / 'log4j2.xml'}"
        classpath = os.pathsep.join(str(jar) for jar in jars)
        return [str(ensure_java() / "bin" / "java"), *_JVM, logging, "-cp", classpath, main]

    def _serves(self) -> bool:
        assert self._process is not None
        deadline = time.monotonic() + _READY_SECONDS
        port = int(self.bootstrap.rpartition(":")[2])
        while time.monotonic() < deadline and self._process.poll() is None:
            # Asked by socket first: a client would log each refused connection.
            with socket.socket() as probe:
                probe.settimeout(1.0)
                listens = probe.connect_ex(("127.0.0.1", port)) == 0
            if listens:
                with suppress(KafkaException):
                    members = self.admin().list_topics(timeout=2.0).brokers.values()
                    if any(member.port == port for member in members):
                        return True
            time.sleep(0.1)
        return False

    def _log(self) -> str:
        return (self._folder / "broker.log").read_text(encoding="utf-8", errors="replace")

    def _forget(self) -> None:
        self._process = None
        atexit.unregister(self.kill)


def _free_ports() -> tuple[int, int, int]:
    """Return ports that were free a moment ago; each is held until all are known."""

    def free() -> int:
        probe = held.enter_context(socket.socket())
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

    with ExitStack() as held:
        return free(), free(), free()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """One broker for all tests of a session; each test makes topics with names of its own."""
    with KafkaBroker(tmp_path_factory.mktemp("kafka")) as running:
        yield running
