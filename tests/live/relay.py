"""A mirror between Debezium and the reader: the same records, later, and sometimes again.

A real broker with one node delivers almost at once and almost in the order of writing, so a reader
that relies on it is never found out. What mirrors and lagging replicas do is allowed by Kafka's own
promise, which is order within a partition and nothing else: each partition has its own, changing
lag, so END arrives seconds before its rows, or some rows of a transaction before the others. A
mirror that lost its offsets starts over: all that was sent is sent again, in its order.

One thread, one consumer, one idempotent producer. The producer keeps the order through retries; if
it gives up (a fatal error), the partitions go on behind the last record that the broker confirmed:
a record may then come twice, none is left out. Positions are this object's and not a consumer
group's, because a group's would have to be committed with the records in one transaction.

Rejected: to delay single records. That changes the order within a partition, which no broker does,
and a reader has every right to be wrong then.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.live.lane import Lag, Lane
from tests.rig.topics import create_topics

__all__ = ["Relay"]

Chosen = Callable[[str, int], bool]
"""Tells of a partition, by its topic at the source and its number, whether it is meant."""

_LOOK_SECONDS = 0.5
_CONSUMED = 2_000
_HELD = 100_000
"""Records that wait for their time; more are not read until some of them are sent."""

_FLUSH_SECONDS = 10.0

_CLIENT = {"reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 500, "log_level": 0}


class Relay(threading.Thread):
    """Copies all topics ``prefix.*`` to ``mirror_prefix.*`` until it is stopped.

    Args:
        bootstrap: The broker of both.
        prefix: Debezium's ``topic.prefix``.
        mirror_prefix: Its stand-in, which the reader is told of.
        seed: Repeats the sequence of each partition's lags.
        lag_seconds: Least and greatest lag; after so long of quiet everything is copied.

    Attributes:
        copied: Records that the mirror has, each counted once.
        copied_again: Confirmations of records that it had already.
        restarts: How often the producer gave up and a new one went on.
    """

    def __init__(
        self,
        bootstrap: str,
        prefix: str,
        mirror_prefix: str,
        seed: int,
        lag_seconds: tuple[float, float] = (0.0, 3.0),
    ) -> None:
        if f"{mirror_prefix}.".startswith(f"{prefix}."):
            message = f"the mirror {mirror_prefix} of {prefix} would be mirrored itself"
            raise ValueError(message)
        super().__init__(name=f"relay {prefix}", daemon=True)
        self._servers, self._seed, self._bounds = bootstrap, seed, lag_seconds
        self._prefix, self._mirror_prefix = f"{prefix}.", f"{mirror_prefix}."
        self._lanes: dict[tuple[str, int], Lane] = {}
        self._asked: deque[Chosen] = deque()
        self._over = threading.Event()
        self._failure: Exception | None = None
        self._gave_up = False
        self.copied = self.copied_again = self.restarts = 0

    def redeliver(self, chosen: Chosen = lambda _topic, _partition: True) -> None:
        """Start partitions again at their first record, soon.

        Args:
            chosen: Which ones; all, if not given.
        """
        self._asked.append(chosen)

    def stop(self) -> None:
        """End the thread; what was not due yet is not sent.

        Raises:
            Exception: Whatever ended it before.
        """
        self._over.set()
        self.join()
        if self._failure is not None:
            raise self._failure

    def run(self) -> None:
        settings = {
            **_CLIENT,
            "bootstrap.servers": self._servers,
            "group.id": "relay",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
        self._consumer = Consumer(settings)
        self._producer = self._new_producer()
        try:
            self._copy()
        except Exception as error:  # noqa: BLE001 - told by ``stop``
            self._failure = error
        finally:
            self._producer.flush(_FLUSH_SECONDS)
            self._consumer.close()

    def _copy(self) -> None:
        look = 0.0
        while not self._over.is_set():
            if time.monotonic() >= look:
                self._look()
                look = time.monotonic() + _LOOK_SECONDS
            self._start_again()
            self._read()
            self._send()
            self._producer.poll(0)
            if self._gave_up:
                self._go_on_with_another_producer()

    def _look(self) -> None:
        """Find new topics; they are read once their mirrors exist."""
        known = {topic for topic, _ in self._lanes}
        # The broker may be down; then there is nothing new.
        with suppress(KafkaException):
            topics = self._consumer.list_topics(timeout=2.0).topics
            new = {
                name: len(described.partitions)
                for name, described in topics.items()
                if name.startswith(self._prefix) and name not in known and described.partitions
            }
            mirrors = {name: self._mirror(name) for name in new}
            missing = {mirrors[name]: n for name, n in new.items() if mirrors[name] not in topics}
            if missing:
                create_topics(self._servers, missing)
            for name, count in new.items():
                for number in range(count):
                    lag = Lag(f"{self._seed} {name} {number}", self._bounds)
                    self._lanes[name, number] = Lane(name, number, mirrors[name], lag)
            if new:
                self._assign()

    def _mirror(self, topic: str) -> str:
        return self._mirror_prefix + topic.removeprefix(self._prefix)

    def _assign(self) -> None:
        """Read on where the lanes say; what the client has fetched for other places is dropped."""
        self._consumer.assign(
            [TopicPartition(lane.topic, lane.partition, lane.next) for lane in self._lanes.values()]
        )

    def _start_again(self) -> None:
        while self._asked:
            chosen = self._asked.popleft()
            for lane in self._lanes.values():
                if chosen(lane.topic, lane.partition):
                    lane.passes += 1
                    lane.confirmed = -1
                    lane.go_on_at(0)
            self._assign()

    def _read(self) -> None:
        if sum(len(lane.waiting) for lane in self._lanes.values()) > _HELD:
            time.sleep(0.02)
            return
        for message in self._consumer.consume(_CONSUMED, 0.05):
            # Errors tell of a broker that is away; the client itself asks again.
            topic, number, offset = message.topic(), message.partition(), message.offset()
            if message.error() is not None or topic is None or number is None or offset is None:
                continue
            lane = self._lanes[topic, number]
            lane.waiting.append((lane.lag.due(time.monotonic()), message))
            lane.next = offset + 1

    def _send(self) -> None:
        # A full queue is tried again in the next round; the record stays where it is.
        with suppress(BufferError):
            for lane in self._lanes.values():
                while lane.waiting and lane.waiting[0][0] <= time.monotonic():
                    self._produce(lane, lane.waiting[0][1])
                    lane.waiting.popleft()

    def _produce(self, lane: Lane, message: Message) -> None:
        headers: Any = message.headers() or []
        self._producer.produce(
            lane.mirror,
            value=message.value(),
            key=message.key(),
            partition=lane.partition,
            timestamp=message.timestamp()[1],
            headers=headers,
            on_delivery=partial(self._delivered, lane, lane.passes, message.offset()),
        )

    def _delivered(
        self, lane: Lane, number: int, offset: int | None, error: KafkaError | None, _: Message
    ) -> None:
        if error is not None or offset is None:
            self._gave_up = True
            return
        if offset > lane.highest:
            lane.highest = offset
            self.copied += 1
        else:
            self.copied_again += 1
        if number == lane.passes:
            lane.confirmed = offset

    def _go_on_with_another_producer(self) -> None:
        # All outcomes are heard first: nothing of the old one may be written behind the new one's.
        self._producer.purge()
        self._producer.flush(_FLUSH_SECONDS)
        self._producer = self._new_producer()
        self._gave_up = False
        self.restarts += 1
        for lane in self._lanes.values():
            lane.go_on_at(lane.confirmed + 1)
        self._assign()

    def _new_producer(self) -> Producer:
        return Producer(
            {
                **_CLIENT,
                "bootstrap.servers": self._servers,
                "enable.idempotence": True,
                # Else a record that is given up would be passed by those behind it.
                "enable.gapless.guarantee": True,
                "message.timeout.ms": 0,
                # What a broker takes; the client's own default is less.
                "message.max.bytes": 1_048_588,
                "linger.ms": 5,
                "queue.buffering.max.messages": 1_000_000,
            }
        )
