"""What every source of records offers: topics, watermarks and explicit offset ranges.

The rejected way is Spark Structured Streaming with its checkpoint: progress would live beside the
lake instead of in it, a batch could not be bounded by whole source transactions, and a run could
not read an old range again after a crash. Explicit half-open ranges make every read repeatable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

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
        high: Offset behind its last record.
        observed: Whether they are those of the records alone: the log may begin before its first
            record, and its topic may have more partitions, without a record.
        topic_id: Kafka's id of the topic, which one that is deleted and made again does not keep;
            ``None``: the source has no ids.
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


class Source(Protocol):
    """Records as they lie in the log."""

    def topics(self) -> tuple[str, ...]:
        """Return the data topics that exist now and match the configuration, sorted.

        The transaction topic is not among them.
        """

    def watermarks(self, topics: Sequence[str]) -> Mapping[TopicPartition, Watermarks]:
        """Return the bounds of every partition of ``topics`` as they are now.

        Raises:
            UnavailableError: A topic does not exist or the broker cannot be reached.
        """

    def read(self, ranges: Sequence[OffsetRange]) -> DataFrame:
        """Return the records of ``ranges`` with the columns of ``RECORD``, lazily.

        An empty ``ranges`` gives an empty frame. Records that transactions aborted or compaction
        removed leave gaps in the offsets; a range below the earliest offset fails when it is read.
        """

    def close(self) -> None:
        """Release clients. Safe to call twice."""
