"""Query a Kafka broker from the driver: which topics exist, and which offsets they hold.

Rejected: Spark's reader with ``endingOffsets=latest``. It fixes no range and starts a job for each
query. Also rejected: a consumer per partition with ``get_watermark_offsets``. Its upper bound is
the high watermark. If a range ends beyond the last stable offset, a ``read_committed`` reader waits
two minutes for records that an open Kafka transaction still hides. ``list_offsets`` accepts the
isolation level and answers for all partitions with one request per broker. One response holds both
partitions and topic ids, so the ids cost no extra request. That request never makes the broker
create a topic.

A new topic answers NOT_LEADER_FOR_PARTITION for a moment, and a broker that restarts is away for
some seconds. ``Broker`` repeats such a query until it has waited ``patience_seconds``.

This module imports ``confluent_kafka`` at the top. Other modules import this one only to open a
Kafka source, so that everything else works without that package.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import TimeoutError as NoAnswerInTime
from dataclasses import dataclass
from typing import Any, TypeVar

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, Uuid, admin
from confluent_kafka import TopicPartition as ClientPartition

from lakeingest.errors import AccessError, ConfigError, LakeingestError, UnavailableError
from lakeingest.source.client_options import ClientOptions
from lakeingest.source.contract import TopicPartition, Watermarks
from lakeingest.source.retention import Retention
from lakeingest.source.topics import missing_topic

_LOG = logging.getLogger(__name__)
_Answer = TypeVar("_Answer")

_ASK_SECONDS = 5.0
_CRITICAL = 2
_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 1.0
_MILLISECONDS_OF_AN_HOUR = 3_600_000

_UNKNOWN_TOPIC = "UNKNOWN_TOPIC_OR_PART"
_HIDDEN_TOPIC = "TOPIC_AUTHORIZATION_FAILED"
"""The user may not describe the topic. Since Kafka 1.0 also the answer for a missing topic."""

# Error names, not codes: the codes of librdkafka's own errors are private in ``KafkaError``.
_REFUSED = frozenset(
    {
        "_AUTHENTICATION",
        "CLUSTER_AUTHORIZATION_FAILED",
        "GROUP_AUTHORIZATION_FAILED",
        "SASL_AUTHENTICATION_FAILED",
        _HIDDEN_TOPIC,
    }
)
_TRANSIENT = frozenset(
    {
        "_ALL_BROKERS_DOWN",
        "_RESOLVE",
        "_TIMED_OUT",
        "_TRANSPORT",
        "BROKER_NOT_AVAILABLE",
        "FENCED_LEADER_EPOCH",
        "KAFKA_STORAGE_ERROR",
        "LEADER_NOT_AVAILABLE",
        "NETWORK_EXCEPTION",
        "NOT_LEADER_FOR_PARTITION",
        "OFFSET_NOT_AVAILABLE",
        "REQUEST_TIMED_OUT",
        "UNKNOWN_LEADER_EPOCH",
        _UNKNOWN_TOPIC,
    }
)
_NO_ID = str(Uuid(0, 0))
"""The topic id that a broker before 2.8 returns. It is compared as text, because two ``Uuid``
objects are never equal."""
_NO_LEADER = KafkaError(KafkaError.LEADER_NOT_AVAILABLE)
# confluent_kafka exports these classes, but its type hints do not declare them.
_OFFSET_SPEC: Any = vars(admin)["OffsetSpec"]
_CONFIG_RESOURCE: Any = vars(admin)["ConfigResource"]


@dataclass(frozen=True)
class _Topic:
    """Partitions and id of a topic; id ``None``: the broker is too old for topic ids."""

    partitions: Sequence[int]
    id: str | None


class Broker:
    """A Kafka cluster, queried from the driver.

    Args:
        options: Settings of both clients.

    Raises:
        ConfigError: librdkafka refuses a setting.
    """

    def __init__(self, options: ClientOptions) -> None:
        self._options = options
        self._ask_seconds = min(_ASK_SECONDS, options.patience_seconds)
        self._last_trouble: KafkaError | None = None
        self._admin: admin.AdminClient | None = None

    @property
    def where(self) -> str:
        """The cluster's name for messages."""
        return f"the Kafka cluster at bootstrap.servers={self._options.servers}"

    def topics(self) -> frozenset[str]:
        """Return the names of all topics.

        Raises:
            UnavailableError: No broker answers.
            AccessError: The broker refuses the login or the request.
        """

        def ask() -> frozenset[str]:
            # List all topics: a request for one by name would make the broker create the topic if
            # auto.create.topics.enable is on.
            return frozenset(self._client().list_topics(timeout=self._ask_seconds).topics)

        return self._retry("list topics", ask)

    def watermarks(self, topics: Sequence[str]) -> dict[TopicPartition, Watermarks]:
        """Return the current bounds of every partition of ``topics``.

        The upper bound is the last stable offset if ``isolation.level`` is read_committed, else the
        high watermark.

        Raises:
            UnavailableError: A topic does not exist or no broker answers.
            AccessError: The broker refuses the login or the request.
        """
        topics_by_name = self._describe(list(dict.fromkeys(topics)))
        partitions = [
            TopicPartition(t, part)
            for t, topic in topics_by_name.items()
            for part in topic.partitions
        ]
        # Read the lower bound first: an older low with a newer high is a range that is safe to
        # read. In the other order a range could end before it starts.
        earliest = self._offsets(partitions, _OFFSET_SPEC.earliest())
        high = self._offsets(partitions, _OFFSET_SPEC.latest())
        return {
            partition: Watermarks(
                earliest[partition], high[partition], topic_id=topics_by_name[partition.topic].id
            )
            for partition in partitions
        }

    def retention(self, topics: Sequence[str]) -> dict[str, Retention]:
        """Return how long each topic keeps its records.

        Topics whose settings the user may not describe are left out: a run needs no right to.

        Raises:
            UnavailableError: No broker answers.
            AccessError: The broker refuses the login.
        """
        if not topics:
            return {}

        def ask() -> dict[str, Retention]:
            kind = _CONFIG_RESOURCE.Type.TOPIC
            resources = [_CONFIG_RESOURCE(kind, topic) for topic in topics]
            futures = self._client().describe_configs(resources, request_timeout=self._ask_seconds)
            retention: dict[str, Retention] = {}
            for resource, future in futures.items():
                try:
                    entries = future.result(2 * self._ask_seconds)
                except KafkaException as error:
                    if error.args[0].name() != _HIDDEN_TOPIC:
                        raise
                else:
                    values = {name: entry.value for name, entry in entries.items()}
                    retention[resource.name] = _retention_of(values)
            return retention

        return self._retry("describe the settings of topics", ask)

    def close(self) -> None:
        """Release the client. Safe to call twice."""
        # librdkafka has no close call: it closes its connections when Python frees the object.
        self._admin = None

    def _client(self) -> admin.AdminClient:
        if self._admin is None:
            settings: dict[str, Any] = {
                **self._options.driver,
                "error_cb": self._note_trouble,
                # librdkafka would log every failed connection; our error holds the cause.
                "log_level": _CRITICAL,
            }
            try:
                self._admin = admin.AdminClient(settings, logger=_LOG)
            except KafkaException as error:
                reason = self._options.redact(error.args[0].str())
                message = f"The Kafka client on the driver refuses its settings: {reason}."
                raise ConfigError(message) from None
        return self._admin

    def _note_trouble(self, error: KafkaError) -> None:
        # Only this callback receives a refused login; the request itself just times out.
        if self._last_trouble is None or self._last_trouble.name() not in _REFUSED:
            self._last_trouble = error

    def _describe(self, topics: Sequence[str]) -> dict[str, _Topic]:
        """Return partitions and id of each topic; every topic has a partition."""
        if not topics:
            return {}

        def ask() -> dict[str, _Topic]:
            futures = self._client().describe_topics(
                TopicCollection(list(topics)), request_timeout=self._ask_seconds
            )
            topics_by_name: dict[str, _Topic] = {}
            for topic in topics:
                try:
                    description = futures[topic].result(2 * self._ask_seconds)
                except KafkaException as error:
                    if error.args[0].name() == _HIDDEN_TOPIC:
                        raise self._hidden(topic) from None
                    if error.args[0].name() != _UNKNOWN_TOPIC:
                        raise
                    existing = self.topics()
                    if topic not in existing:
                        raise missing_topic(topic, existing, self.where) from None
                    raise
                id_ = str(description.topic_id)
                parts = sorted(part.id for part in description.partitions)
                topics_by_name[topic] = _Topic(parts, None if id_ == _NO_ID else id_)
            if not all(description.partitions for description in topics_by_name.values()):
                # A broker that has just started names a topic before it knows the partitions.
                raise KafkaException(_NO_LEADER)
            return topics_by_name

        return self._retry("describe topics", ask)

    def _hidden(self, topic: str) -> AccessError:
        return AccessError(
            f"The user may not describe topic {topic!r} of {self.where}, so nothing tells whether "
            "it exists. Grant the user READ and DESCRIBE on it."
        )

    def _offsets(
        self, partitions: Sequence[TopicPartition], spec: Any
    ) -> dict[TopicPartition, int]:
        if not partitions:
            return {}
        level = (
            IsolationLevel.READ_COMMITTED
            if self._options.read_committed
            else IsolationLevel.READ_UNCOMMITTED
        )

        def ask() -> dict[TopicPartition, int]:
            answers = self._client().list_offsets(
                {
                    ClientPartition(partition.topic, partition.partition): spec
                    for partition in partitions
                },
                isolation_level=level,
                request_timeout=self._ask_seconds,
            )
            return {
                TopicPartition(partition.topic, partition.partition): answer.result(
                    2 * self._ask_seconds
                ).offset
                for partition, answer in answers.items()
            }

        return self._retry("ask for offsets", ask)

    def _retry(self, action: str, ask: Callable[[], _Answer]) -> _Answer:
        deadline = time.monotonic() + self._options.patience_seconds
        # Forget the errors of an earlier request: they do not explain a failure of this one.
        self._last_trouble = None
        pause = _PAUSE_SECONDS
        while True:
            try:
                return ask()
            except (KafkaException, NoAnswerInTime) as error:
                failure = error.args[0] if isinstance(error, KafkaException) else None
                # Let the client deliver the errors that its own thread received.
                self._client().poll(0)
                if not self._is_transient(failure) or time.monotonic() + pause > deadline:
                    raise self._error(action, failure) from None
                # Use a new client: the old one would keep its cached leaders and epochs.
                self.close()
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _is_transient(self, failure: KafkaError | None) -> bool:
        if self._last_trouble is not None and self._last_trouble.name() in _REFUSED:
            return False
        return failure is None or failure.retriable() or failure.name() in _TRANSIENT

    def _error(self, action: str, failure: KafkaError | None) -> LakeingestError:
        causes = [cause for cause in (self._last_trouble, failure) if cause is not None]
        details = "; ".join(dict.fromkeys(cause.str() for cause in causes)) or "no answer"
        reason = f"Cannot {action} of {self.where}: {self._options.redact(details)}."
        if any(cause.name() in _REFUSED for cause in causes):
            return AccessError(f"{reason} Check the login settings and the rights of its user.")
        return UnavailableError(
            f"{reason} Check that the broker runs, that this address is right and reachable from "
            "here, and that security.protocol is the listener's."
        )


def _retention_of(settings: Mapping[str, str | None]) -> Retention:
    """Return a topic's retention; ``retention.ms`` of -1 means for ever."""
    milliseconds = int(settings.get("retention.ms") or -1)
    hours = milliseconds / _MILLISECONDS_OF_AN_HOUR if milliseconds >= 0 else None
    policies = (settings.get("cleanup.policy") or "delete").split(",")
    return Retention(hours if "delete" in policies else None, "compact" in policies)
