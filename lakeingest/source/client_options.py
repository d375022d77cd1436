"""Derive the settings of two Kafka clients from one set: Java in Spark, librdkafka on the driver.

A user writes the settings once, by the names of the Java client, as for every Spark or Hudi job.
Rejected: two sets of settings; they drift apart until the plan uses another cluster than the read.
Also rejected: to let librdkafka fail on a name that it does not know; its error names no remedy. If
the clients differ only in names, this module translates the names in both directions. If librdkafka
has no equivalent, the error says so and names the remedy. Settings that tune how a client fetches
records go to Spark only.

lakeingest alone decides positions, deserialisers and commits: progress lives in the lake. Files
from other tools often contain such keys. lakeingest ignores them with a line in the log; it does
not refuse them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from lakeingest.errors import ConfigError
from lakeingest.source import client_security

_LOG = logging.getLogger(__name__)

NOT_THE_USERS = frozenset(
    {
        "auto.commit.interval.ms",
        "auto.offset.reset",
        "enable.auto.commit",
        "group.id",
        "group.instance.id",
        "interceptor.classes",
        "key.deserializer",
        "value.deserializer",
    }
)
"""Keys that Spark's reader refuses, or that would start at another position than the ledger's."""

READER_DEFAULTS = {
    # Hide the records of a Kafka transaction that the connector aborted.
    "isolation.level": "read_committed",
    # The default, 500, costs half a second per partition: Spark closes the consumer while its last
    # fetch still waits for records that never come (measured; 5 brings 2.3 s down to 0.4 s).
    "fetch.max.wait.ms": "5",
    # Write nothing to the source cluster, not even a topic with a misspelt name.
    "allow.auto.create.topics": "false",
}
"""Defaults for Spark's reader; the user's settings override them (names of the Java client)."""

# Connection settings with the same name and meaning in both clients.
_SHARED = frozenset(
    {
        "bootstrap.servers",
        "client.dns.lookup",
        "client.id",
        "client.rack",
        "connections.max.idle.ms",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "retry.backoff.ms",
        "security.protocol",
        "socket.connection.setup.timeout.ms",
    }
)

DEFAULT_PATIENCE_SECONDS = 30.0
"""How long to retry a request to the broker; ``default.api.timeout.ms`` overrides it."""


@dataclass(frozen=True)
class ClientOptions:
    """The settings of both clients; ``repr`` and messages do not show their values.

    Attributes:
        reader: Settings for Spark's reader: names of the Java client without ``kafka.``.
        driver: Settings for librdkafka.
        read_committed: Whether both clients hide records of aborted and open Kafka transactions.
        patience_seconds: How long to retry a request to the broker, in seconds.
    """

    reader: Mapping[str, str] = field(repr=False)
    driver: Mapping[str, str] = field(repr=False)
    read_committed: bool
    patience_seconds: float

    @property
    def servers(self) -> str:
        """The value of ``bootstrap.servers``."""
        return self.driver["bootstrap.servers"]

    def redact(self, text: str) -> str:
        """Return ``text`` with every secret value replaced by ``***``."""
        return client_security.redact(text, (self.reader, self.driver))


def client_options(options: Mapping[str, str]) -> ClientOptions:
    """Return the settings of both clients.

    Args:
        options: The user's settings, by the client's own names (no ``kafka.`` before them).

    Raises:
        ConfigError: ``bootstrap.servers`` is missing, a value is invalid, or librdkafka has no
            equivalent of a setting of the Java client.
    """
    settings = {key: value.strip() for key, value in options.items()}
    ignored = sorted(NOT_THE_USERS & settings.keys())
    if ignored:
        _LOG.info("Kafka settings without effect, progress lives in the lake: %s", ignored)
    settings = {key: value for key, value in settings.items() if key not in NOT_THE_USERS}
    if not settings.get("bootstrap.servers"):
        message = "The Kafka setting 'bootstrap.servers' is missing (host:port, host:port, …)."
        raise ConfigError(message)
    security = client_security.translate(settings)
    other_settings = {k: v for k, v in settings.items() if not client_security.is_security(k)}
    reader = {**READER_DEFAULTS, **other_settings, **security.reader}
    driver = {**{k: v for k, v in other_settings.items() if k in _SHARED}, **security.driver}
    return ClientOptions(reader, driver, _read_committed(reader), _patience(settings))


def _read_committed(reader: Mapping[str, str]) -> bool:
    level = reader["isolation.level"]
    if level not in {"read_committed", "read_uncommitted"}:
        message = f"'isolation.level' is {level!r}: use read_committed or read_uncommitted."
        raise ConfigError(message)
    return level == "read_committed"


def _patience(settings: Mapping[str, str]) -> float:
    timeout_ms = settings.get("default.api.timeout.ms")
    if timeout_ms is None:
        return DEFAULT_PATIENCE_SECONDS
    if not timeout_ms.isdecimal():
        message = f"'default.api.timeout.ms' is {timeout_ms!r}: give whole milliseconds."
        raise ConfigError(message)
    return int(timeout_ms) / 1000
