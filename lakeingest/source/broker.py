"""Questions to a Kafka broker, asked on the driver: which topics, which offsets.

Rejected: Spark's reader with ``endingOffsets=latest``, which fixes no range and starts a job for
each look; and a consumer per partition with ``get_watermark_offsets``, whose upper bound is the
high watermark: a range that ends behind the last stable offset makes a ``read_committed`` reader
wait two minutes for records that an open Kafka transaction still hides. ``list_offsets`` takes the
isolation level and answers for all partitions with one request per broker. Partitions and ids of
topics come with one answer, so that ids cost no request; it never makes the broker create a topic.

A topic just created answers NOT_LEADER_FOR_PARTITION for a moment, and a broker that restarts is
away for some seconds: such answers are asked again within the patience of the options.

This module imports ``confluent_kafka`` at the top and is itself imported only when a Kafka source
is opened, so that everything else works without that package.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import TimeoutError as NoAnswerInTime
from dataclasses import dataclass
from typing import Any, TypeVar

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, Uuid, admin
from confluent_kafka import TopicPartition as ClientPartition

from lakeingest.errors import AccessError, ConfigError, LakeingestError, UnavailableError
from lakeingest.source.client_options import ClientOptions
from lakeingest.source.contract import TopicPartition, Watermarks
from lakeingest.source.topics import missing_topic

_LOG = logging.getLogger(__name__)
_Answer = TypeVar("_Answer")

_ASK_SECONDS = 5.0
_CRITICAL = 2
_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 1.0

_UNKNOWN_TOPIC = "UNKNOWN_TOPIC_OR_PART"
_HIDDEN_TOPIC = "TOPIC_AUTHORIZATION_FAILED"
"""A topic that the user may not describe, also one that is not there (since Kafka 1.0)."""

# By name: the codes that librdkafka itself sets are private attributes of ``KafkaError``.
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
"""What a broker before 2.8 says. An ``Uuid`` equals none but itself."""
_NO_LEADER = KafkaError(KafkaError.LEADER_NOT_AVAILABLE)
# confluent_kafka exports this class, but does not say so to a type checker.
_OFFSET_SPEC: Any = vars(admin)["OffsetSpec"]


@dataclass(frozen=True)
class _Topic:
    """Partitions of a topic, and its id; ``None``: the broker is too old to give it one."""

    partitions: Sequence[int]
    id: str | None


class Broker:
    """A Kafka cluster as the driver sees it.

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
        """The cluster as it stands in a message."""
        return f"the Kafka cluster at bootstrap.servers={self._options.servers}"

    def topics(self) -> frozenset[str]:
        """Return the names of all topics.

        Raises:
            UnavailableError: No broker answers.
            AccessError: The broker refuses the login or the question.
        """

        def ask() -> frozenset[str]:
            # All topics: asking for one by name would make the broker create it where
            # auto.create.topics.enable is left on.
            return frozenset(self._client().list_topics(timeout=self._ask_seconds).topics)

        return self._patiently("list topics", ask)

    def watermarks(self, topics: Sequence[str]) -> dict[TopicPartition, Watermarks]:
        """Return the bounds of every partition of ``topics`` as they are now.

        The upper bound is the last stable offset where ``isolation.level`` is read_committed, else
        the high watermark.

        Raises:
            UnavailableError: A topic does not exist or no broker answers.
            AccessError: The broker refuses the login or the question.
        """
        found = self._described(list(dict.fromkeys(topics)))
        places = [TopicPartition(t, part) for t, told in found.items() for part in told.partitions]
        # The lower bound first: a range between an older low and a newer high is safe to read,
        # the other way round it could end before it starts.
        earliest = self._offsets(places, _OFFSET_SPEC.earliest())
        high = self._offsets(places, _OFFSET_SPEC.latest())
        return {
            place: Watermarks(earliest[place], high[place], topic_id=found[place.topic].id)
            for place in places
        }

    def close(self) -> None:
        """Release the client. Safe to call twice."""
        # librdkafka closes its connections when the object goes; it has no call for it.
        self._admin = None

    def _client(self) -> admin.AdminClient:
        if self._admin is None:
            settings: dict[str, Any] = {
                **self._options.driver,
                "error_cb": self._note_trouble,
                # Every attempt to connect would be a line; what matters stands in our error.
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
        # A refused login only shows here; the question itself just times out.
        if self._last_trouble is None or self._last_trouble.name() not in _REFUSED:
            self._last_trouble = error

    def _described(self, wanted: Sequence[str]) -> dict[str, _Topic]:
        """Return what the broker says of topics; each has a partition."""
        if not wanted:
            return {}

        def ask() -> dict[str, _Topic]:
            asked = self._client().describe_topics(
                TopicCollection(list(wanted)), request_timeout=self._ask_seconds
            )
            found: dict[str, _Topic] = {}
            for topic in wanted:
                try:
                    told = asked[topic].result(2 * self._ask_seconds)
                except KafkaException as error:
                    if error.args[0].name() == _HIDDEN_TOPIC:
                        raise self._hidden(topic) from None
                    if error.args[0].name() != _UNKNOWN_TOPIC:
                        raise
                    existing = self.topics()
                    if topic not in existing:
                        raise missing_topic(topic, existing, self.where) from None
                    raise
                id_ = str(told.topic_id)
                parts = sorted(part.id for part in told.partitions)
                found[topic] = _Topic(parts, None if id_ == _NO_ID else id_)
            if not all(told.partitions for told in found.values()):
                # A broker that has just started names a topic before it knows of its partitions.
                raise KafkaException(_NO_LEADER)
            return found

        return self._patiently("describe topics", ask)

    def _hidden(self, topic: str) -> AccessError:
        return AccessError(
            f"The user may not describe topic {topic!r} of {self.where}, so nothing tells whether "
            "it exists. Grant the user READ and DESCRIBE on it."
        )

    def _offsets(self, places: Sequence[TopicPartition], wanted: Any) -> dict[TopicPartition, int]:
        if not places:
            return {}
        level = (
            IsolationLevel.READ_COMMITTED
            if self._options.read_committed
            else IsolationLevel.READ_UNCOMMITTED
        )

        def ask() -> dict[TopicPartition, int]:
            answers = self._client().list_offsets(
                {ClientPartition(place.topic, place.partition): wanted for place in places},
                isolation_level=level,
                request_timeout=self._ask_seconds,
            )
            return {
                TopicPartition(place.topic, place.partition): answer.result(
                    2 * self._ask_seconds
                ).offset
                for place, answer in answers.items()
            }

        return self._patiently("ask for offsets", ask)

    def _patiently(self, what: str, ask: Callable[[], _Answer]) -> _Answer:
        deadline = time.monotonic() + self._options.patience_seconds
        # What an earlier question met, and got over, explains nothing about this one.
        self._last_trouble = None
        pause = _PAUSE_SECONDS
        while True:
            try:
                return ask()
            except (KafkaException, NoAnswerInTime) as error:
                failure = error.args[0] if isinstance(error, KafkaException) else None
                # Lets the client hand over what it noted in its own thread.
                self._client().poll(0)
                if not self._may_pass(failure) or time.monotonic() + pause > deadline:
                    raise self._explained(what, failure) from None
                # A new client: the old one goes on with the leaders and epochs it knew before.
                self.close()
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _may_pass(self, failure: KafkaError | None) -> bool:
        if self._last_trouble is not None and self._last_trouble.name() in _REFUSED:
            return False
        return failure is None or failure.retriable() or failure.name() in _TRANSIENT

    def _explained(self, what: str, failure: KafkaError | None) -> LakeingestError:
        causes = [cause for cause in (self._last_trouble, failure) if cause is not None]
        said = "; ".join(dict.fromkeys(cause.str() for cause in causes)) or "no answer"
        reason = f"Cannot {what} of {self.where}: {self._options.redact(said)}."
        if any(cause.name() in _REFUSED for cause in causes):
            return AccessError(f"{reason} Check the login settings and the rights of its user.")
        return UnavailableError(
            f"{reason} Check that the broker runs, that this address is right and reachable from "
            "here, and that security.protocol is the listener's."
        )
