"""A Kafka broker of one node, started from Maven artifacts as a plain process.

How it is started, killed and frozen, and on which ports, is ``process.py``'s. Ready is when a
client gets the broker's metadata. Its data outlives it, so that ``kill`` and ``start`` again is a
crash and a restart.
"""

from __future__ import annotations

import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.rig.broker_jars import broker_jars
from tests.rig.jvm import classpath, java, logging
from tests.rig.process import Server
from tests.rig.topics import create_topics

__all__ = ["PASSWORD", "USER", "KafkaBroker", "broker"]

USER = "lake"
PASSWORD = "hush-hush"

_HEAP_MB = 512

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


class KafkaBroker(Server):
    """A broker on loopback; a context manager that starts and stops it."""

    port_count = 3

    @property
    def bootstrap(self) -> str:
        """The value of ``bootstrap.servers``."""
        return f"127.0.0.1:{self.port}"

    @property
    def bootstrap_with_login(self) -> str:
        """The listener that wants ``USER`` and ``PASSWORD`` (SASL_PLAINTEXT, PLAIN)."""
        assert self._ports, "the broker was never started"
        return f"127.0.0.1:{self._ports[2]}"

    def admin(self) -> AdminClient:
        """Return a client that creates topics and removes records."""
        return AdminClient({"bootstrap.servers": self.bootstrap})

    def topics(self) -> set[str]:
        """Return the topics that are there."""
        return set(self.admin().list_topics(timeout=10.0).topics)

    def create_topics(self, partitions: dict[str, int]) -> None:
        """Create topics; see ``tests.rig.topics``."""
        create_topics(self.bootstrap, partitions)

    def delete_topic(self, topic: str) -> None:
        """Delete a topic; wait until it is gone."""
        # Held while it works: the answers of a client that is gone are errors.
        admin = self.admin()
        for deleted in admin.delete_topics([topic]).values():
            deleted.result()
        while topic in self.topics():
            time.sleep(0.1)

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """Remove the records below an offset, as retention does."""
        admin = self.admin()
        for removed in admin.delete_records([TopicPartition(topic, partition, before)]).values():
            removed.result()

    def fetch(self) -> None:
        broker_jars()

    def _prepare(self) -> None:
        port, controller_port, login_port = self._ports
        text = _PROPERTIES.format(
            port=port,
            controller_port=controller_port,
            login_port=login_port,
            user=USER,
            password=PASSWORD,
            data=self._folder / f"data-{port}",
        )
        self._settings.write_text(text, encoding="utf-8")
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # An id that starts with a dash would be taken for an option.
        formatting = [*self._java("kafka.tools.StorageTool"), "format"]
        formatting += ["--config", str(self._settings), f"--cluster-id=A{cluster[1:]}"]
        run = subprocess.run(formatting, capture_output=True, text=True, check=False)
        if run.returncode:
            message = f"The broker's storage was not formatted: {run.stdout}{run.stderr}"
            raise RuntimeError(message)

    def _command(self) -> list[str]:
        return [*self._java("kafka.Kafka"), str(self._settings)]

    def _answers(self) -> bool:
        with suppress(KafkaException):
            members = self.admin().list_topics(timeout=2.0).brokers.values()
            return any(member.port == self.port for member in members)
        return False

    @property
    def _settings(self) -> Path:
        return self._folder / "server.properties"

    def _java(self, main: str) -> list[str]:
        return [*java(_HEAP_MB, logging(self._folder)), *classpath(broker_jars()), main]


@pytest.fixture(scope="package")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """One broker for the tests of a folder; each test makes topics with names of its own."""
    with KafkaBroker(tmp_path_factory.mktemp("kafka")) as running:
        yield running
