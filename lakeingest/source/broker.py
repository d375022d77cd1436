"""Questions to a Kafka broker, asked on the driver: which topics, which offsets.

Rejected: Spark's reader with ``endingOffsets=latest``, which fixes no range and starts a job for
each look; and a consumer per partition with ``get_watermark_offsets``, whose upper bound is the
high watermark: a range that ends behind the last stable offset makes a ``read_committed`` reader
wait two minutes for records that an open Kafka transaction still hides. ``list_offsets`` takes the
isolation level and answers for all partitions with one request per broker.

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
from typing import Any, TypeVar

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, admin
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

# By name: the codes that librdkafka itself sets are private attributes of ``KafkaError``.
_REFUSED = frozenset(
    {
        "_AUTHENTICATION",
        "CLUSTER_AUTHORIZATION_FAILED",
        "GROUP_AUTHORIZATION_FAILED",
        "SASL_AUTHENTICATION_FAILED",
        "TOPIC_AUTHORIZATION_FAILED",
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
        "UNKNOWN_TOPIC_OR_PART",
    }
)
# confluent_kafka exports this class, but does not say so to a type checker.
_OFFSET_SPEC: Any = vars(admin)["OffsetSpec"]


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
        return frozenset(self._partitions())

    def watermarks(self, topics: Sequence[str]) -> dict[TopicPartition, Watermarks]:
        """Return the bounds of every partition of ``topics`` as they are now.

        The upper bound is the last stable offset where ``isolation.level`` is read_committed, else
        the high watermark.

        Raises:
            UnavailableError: A topic does not exist or no broker answers.
            AccessError: The broker refuses the login or the question.
        """
        existing = self._partitions()
        for topic in topics:
            if topic not in existing:
                raise missing_topic(topic, existing, self.where)
        places = [TopicPartition(t, p) for t in dict.fromkeys(topics) for p in existing[t]]
        # The lower bound first: a range between an older low and a newer high is safe to read,
        # the other way round it could end before it starts.
        earliest = self._offsets(places, _OFFSET_SPEC.earliest())
        high = self._offsets(places, _OFFSET_SPEC.latest())
        return {place: Watermarks(earliest[place], high[place]) for place in places}

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

    def _partitions(self) -> dict[str, list[int]]:
        def ask() -> dict[str, list[int]]:
            # All topics: asking for one by name would make the broker create it where
            # auto.create.topics.enable is left on.
            answer = self._client().list_topics(timeout=self._ask_seconds)
            return {name: sorted(topic.partitions) for name, topic in answer.topics.items()}

        return self._patiently("list topics", ask)

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
