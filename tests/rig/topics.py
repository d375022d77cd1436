"""Topics for tests: records of any time are taken, and none is removed by the broker itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confluent_kafka import admin

_KEPT = {"retention.ms": "-1", "message.timestamp.after.max.ms": str(2**63 - 1)}
# confluent_kafka exports this class, but does not say so to a type checker.
_NEW_TOPIC: Any = vars(admin)["NewTopic"]


def create_topics(bootstrap: str, partitions: Mapping[str, int]) -> None:
    """Create topics that keep all records whatever their timestamp.

    Args:
        bootstrap: The broker.
        partitions: Number of partitions by name of the topic.

    Raises:
        KafkaException: A topic exists already, or the broker refuses it.
    """
    wanted = [
        _NEW_TOPIC(name, num_partitions=count, replication_factor=1, config=_KEPT)
        for name, count in partitions.items()
    ]
    # Held while it works: the answers of a client that is gone are errors.
    client = admin.AdminClient({"bootstrap.servers": bootstrap})
    for created in client.create_topics(wanted).values():
        created.result()
