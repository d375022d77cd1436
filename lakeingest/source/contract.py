"""Define the contract of a source of records: topics, watermarks and explicit offset ranges.

The rejected way is Spark Structured Streaming with its checkpoint. Progress would live beside the
lake instead of in it, a batch could not end at a transaction boundary, and a run could not read an
old range again after a crash. Explicit half-open ranges make every read repeatable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pyspark.sql import DataFrame


@dataclass(frozen=True, order=True)
class TopicPartition:
    """One partition of one Kafka topic."""

    topic: str
    partition: int


@dataclass(frozen=True)
class Watermarks:
    """Bounds of a partition: the earliest retained offset and the high watermark (exclusive).

    Attributes:
        earliest: Offset at which the log begins.
        high: Offset after its last record.
        observed: Whether the bounds come only from the existing records. Then the log may begin
            before its first record, and the topic may have more partitions, without a record.
        topic_id: Kafka's id of the topic; a deleted and recreated topic has a new one. ``None``:
            the source has no ids.
    """

    earliest: int
    high: int
    observed: bool = False
    topic_id: str | None = None


@dataclass(frozen=True)
class OffsetRange:
    """Records of one partition with ``start <= offset < end``."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def place(self) -> TopicPartition:
        """The partition."""
        return TopicPartition(self.topic, self.partition)


class Source(Protocol):
    """Access to the records of a log."""

    def topics(self) -> tuple[str, ...]:
        """Return the data topics that exist now and match the configuration, sorted.

        The result never contains the transaction topic.
        """

    def watermarks(self, topics: Sequence[str]) -> Mapping[TopicPartition, Watermarks]:
        """Return the current bounds of every partition of ``topics``.

        Raises:
            UnavailableError: A topic does not exist or the broker does not answer.
        """

    def read(self, ranges: Sequence[OffsetRange]) -> DataFrame:
        """Return the records of ``ranges`` with the columns of ``RECORD``, lazily.

        An empty ``ranges`` gives an empty frame. Aborted transactions and compaction leave gaps in
        the offsets. A range below the earliest offset fails when an action reads it.
        """

    def close(self) -> None:
        """Release clients. Safe to call twice."""


@runtime_checkable
class Retaining(Protocol):
    """A source that keeps records for a time only; a recorded folder keeps them for ever."""

    def risks(self, topics: Sequence[str]) -> tuple[str, ...]:
        """Return what may remove records of ``topics`` before a run reads them, as text.

        Raises:
            UnavailableError: The broker does not answer.
        """
