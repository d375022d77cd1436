"""What has arrived in a topic: waits until it is enough, whoever is killed meanwhile.

A topic that does not exist yet, a broker that is down and a partition without a leader all look the
same to the one who waits: nothing has arrived. Only the time that is over is an error.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.rig.replay import Record

__all__ = ["arrived"]


def arrived(
    bootstrap: str,
    topic: str,
    wanted: int | Callable[[list[Record]], bool],
    seconds: float = 60.0,
) -> list[Record]:
    """Wait until a topic holds what is wanted; return the records read until then.

    Args:
        bootstrap: The broker.
        topic: A topic that may not exist yet.
        wanted: A number of records, repeated ones counted; or a test of the records so far.
            Transactional records count if committed.
        seconds: How long to wait.

    Returns:
        The records, by partition and offset.

    Raises:
        TimeoutError: It did not come.
    """
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "rig",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "reconnect.backoff.max.ms": 500,
        "log_level": 0,
    }
    deadline = time.monotonic() + seconds
    found: list[Record] = []
    reader = Consumer(settings)

    def enough(records: list[Record]) -> bool:
        return len(records) >= wanted if isinstance(wanted, int) else wanted(records)

    try:
        reader.assign(
            [
                TopicPartition(topic, partition, 0)
                for partition in _partitions(reader, topic, deadline)
            ]
        )
        while not enough(found):
            if time.monotonic() > deadline:
                late = f"{topic} held only {len(found)} records after {seconds:.0f} s"
                raise TimeoutError(late)
            message = reader.poll(0.2)
            if message is None or message.error() is not None:
                continue
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            headers: list[Any] = list(message.headers() or [])
            timestamp = message.timestamp()[1]
            found.append(
                Record(topic, partition, offset, timestamp, message.key(), message.value(), headers)
            )
    finally:
        reader.close()
    return sorted(found)


def _partitions(reader: Consumer, topic: str, deadline: float) -> list[int]:
    """Wait for the topic; an empty list when the time is over."""
    while time.monotonic() < deadline:
        with suppress(KafkaException):
            # All topics: asking for one by name is an error while it does not exist.
            described = reader.list_topics(timeout=2.0).topics.get(topic)
            if described is not None and described.partitions:
                return sorted(described.partitions)
        time.sleep(0.1)
    return []
