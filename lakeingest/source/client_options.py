"""One set of Kafka client settings for two clients: Java's in Spark, librdkafka's on the driver.

A user writes the settings once, by the names of the Java client, as every Spark or Hudi job does.
Rejected: two sets of settings, which drift apart until the plan sees another cluster than the read;
and to let librdkafka fail by itself on a name it does not know, which says nothing of the way out.
Where the clients differ in words only, the words are translated, in both directions; where
librdkafka has no equal, the error says so and how to go on. Settings that tune how records are
fetched concern Spark alone.

Positions, deserialisers and commits are ours: progress lives in the lake. Such keys often stand in
files taken over from other tools, so they are left out with a line in the log, not refused.
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
"""Keys that Spark's reader refuses or that would mean another position than the ledger's."""

READER_DEFAULTS = {
    # Records of a source transaction that the connector aborted must not be seen.
    "isolation.level": "read_committed",
    # The default, 500, costs half a second per partition: the consumer is closed while its last
    # fetch waits for records that do not come (measured; 5 brings 2.3 s down to 0.4 s).
    "fetch.max.wait.ms": "5",
    # Nothing is written to the source cluster, not even a topic by a misspelt name.
    "allow.auto.create.topics": "false",
}
"""What Spark's reader gets unless the user says otherwise (names of the Java client)."""

# Connection settings that both clients know by one name and with one meaning.
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
"""How long a question to the broker is asked again; ``default.api.timeout.ms`` overrides it."""


@dataclass(frozen=True)
class ClientOptions:
    """The settings of both clients; their values are kept out of ``repr`` and messages.

    Attributes:
        reader: For Spark's reader, names of the Java client without ``kafka.``.
        driver: For librdkafka.
        read_committed: Whether records of aborted and open Kafka transactions are hidden.
        patience_seconds: How long a question to the broker may be asked again.
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
        ConfigError: ``bootstrap.servers`` is missing, a value cannot be right, or a setting of the
            Java client has no equal in librdkafka.
    """
    given = {key: value.strip() for key, value in options.items()}
    ignored = sorted(NOT_THE_USERS & given.keys())
    if ignored:
        _LOG.info("Kafka settings without effect, progress lives in the lake: %s", ignored)
    given = {key: value for key, value in given.items() if key not in NOT_THE_USERS}
    if not given.get("bootstrap.servers"):
        message = "The Kafka setting 'bootstrap.servers' is missing (host:port, host:port, …)."
        raise ConfigError(message)
    security = client_security.translate(given)
    plain = {k: v for k, v in given.items() if not client_security.is_security(k)}
    reader = {**READER_DEFAULTS, **plain, **security.reader}
    driver = {**{k: v for k, v in plain.items() if k in _SHARED}, **security.driver}
    return ClientOptions(reader, driver, _read_committed(reader), _patience(given))


def _read_committed(reader: Mapping[str, str]) -> bool:
    level = reader["isolation.level"]
    if level not in {"read_committed", "read_uncommitted"}:
        message = f"'isolation.level' is {level!r}: use read_committed or read_uncommitted."
        raise ConfigError(message)
    return level == "read_committed"


def _patience(given: Mapping[str, str]) -> float:
    timeout_ms = given.get("default.api.timeout.ms")
    if timeout_ms is None:
        return DEFAULT_PATIENCE_SECONDS
    if not timeout_ms.isdecimal():
        message = f"'default.api.timeout.ms' is {timeout_ms!r}: give whole milliseconds."
        raise ConfigError(message)
    return int(timeout_ms) / 1000
