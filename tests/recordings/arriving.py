"""A recorded run of which a reader sees only what has arrived so far.

The order in which records of different topics arrive is nobody's promise. Here it is chosen: the
partitions' ends are moved forward step by step, and the pipeline runs in between, in this process
and without a broker.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pyspark.sql import DataFrame

from lakeingest.config.model import PipelineConfig
from lakeingest.source.contract import OffsetRange, Source, TopicPartition, Watermarks


def waiting_for_more(config: PipelineConfig) -> PipelineConfig:
    """Return the pipeline of a source that goes on, and is waited for."""
    source = config.source.model_copy(update={"kind": "kafka"})
    waits = {"source": source, "transaction_timeout_seconds": 1_000_000_000}
    return config.model_copy(update=waits)


class Arriving:
    """A ``Source`` whose partitions end where the test says."""

    def __init__(self, whole: Source, transaction_topic: str) -> None:
        """Show nothing of ``whole`` yet."""
        self._whole = whole
        self.ends = whole.watermarks([*whole.topics(), transaction_topic])
        self.shown = {where: marks.earliest for where, marks in self.ends.items()}

    def topics(self) -> tuple[str, ...]:
        return tuple(self._whole.topics())

    def watermarks(self, topics: Sequence[str]) -> Mapping[TopicPartition, Watermarks]:
        return {
            where: Watermarks(marks.earliest, self.shown[where])
            for where, marks in self.ends.items()
            if where.topic in topics
        }

    def read(self, ranges: Sequence[OffsetRange]) -> DataFrame:
        return self._whole.read(ranges)

    def close(self) -> None:
        return

    def arrive(self, order: Sequence[TopicPartition], chunk: int) -> Iterator[int]:
        """Let the partitions arrive one after another, ``chunk`` records at a time."""
        total = 0
        for where in order:
            while self.shown[where] < self.ends[where].high:
                self.shown[where] = min(self.shown[where] + chunk, self.ends[where].high)
                total += chunk
                yield total
