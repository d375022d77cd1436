"""An arrival in which every protection is needed: made of a recorded run, in three stages.

1. Everything is there but the later records of the transaction topic and, of the large
   transactions' table, two of three partitions. Of the one that is there each row came four times,
   so that as many records are there as END counts.
2. The rest of that table arrives.
3. Old changes of one table come again, as from a mirror that lost its offsets and has not yet got
   to the newest; and the rest of the transaction topic arrives, so that there is a batch to take
   them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from pyspark.sql import SparkSession

from lakeingest.config import load_config
from lakeingest.config.model import PipelineConfig
from lakeingest.source import open_source
from tests.envelope.records import recorded
from tests.recordings.altered import Line, altered, appended
from tests.recordings.arriving import Arriving, waiting_for_more
from tests.recordings.configure import RecordedRun, packaged_run, write_properties

REPEATS = 4
"""Times that a row comes: more than the table has partitions."""

LARGE, OLD = "bulk", "customers"
"""The table of the large transactions, and that of which old changes come again."""

ENDS = 1300
"""Records of the transaction topic in the first stages: behind the first large transaction."""


class Crafted:
    """The arrival, its pipeline and its truth.

    Attributes:
        run: The recorded run with its repeats.
        properties: The pipeline's file; it is one that ends.
        config: The same pipeline, as one that waits for more.
    """

    def __init__(self, folder: Path) -> None:
        """Write run and configuration into an empty folder."""
        edits = {LARGE: _repeated, OLD: _old_again}
        self.run: RecordedRun = altered(packaged_run(), folder / "events", **edits)
        self.lake = folder / "lake"
        settings = self.run.configuration(self.lake)
        self.properties = write_properties(folder / "pipeline.properties", settings)
        config = load_config(self.properties)
        self.config: PipelineConfig = waiting_for_more(config)
        self._recorded = config.source

    def stages(self, spark: SparkSession) -> Iterator[Arriving]:
        """Yield the source as it is at each stage."""
        topics = self._recorded.transaction_topic
        large, old = (f"{self.run.prefix}.public.{table}" for table in (LARGE, OLD))
        source = Arriving(open_source(spark, self._recorded), topics)
        rows = recorded(self.run.events, large)
        snapshot = _numbers(line for line in rows if _operation(line) == "r")
        original = _numbers(recorded(packaged_run().events, old))
        for where, marks in source.ends.items():
            highs = {old: original[where.partition], topics: ENDS}
            if where.partition:
                highs[large] = snapshot[where.partition]
            source.shown[where] = highs.get(where.topic, marks.high)
        yield source
        for where, marks in source.ends.items():
            if where.topic.endswith(f".{LARGE}"):
                source.shown[where] = marks.high
        yield source
        source.shown = {where: marks.high for where, marks in source.ends.items()}
        yield source


def _operation(line: Line) -> str:
    return str(json.loads(line["v"])["op"]) if line["v"] else ""


def _numbers(lines: Iterable[Line]) -> Counter[int]:
    """Count the lines of each partition."""
    return Counter(line["p"] for line in lines)


def _repeated(lines: list[Line]) -> Iterator[Line]:
    """Repeat each row, but none of the initial snapshot."""
    offsets: Counter[int] = Counter()
    for line in lines:
        for _ in range(1 if _operation(line) == "r" else REPEATS):
            yield {**line, "o": offsets[line["p"]]}
            offsets[line["p"]] += 1


def _old_again(lines: list[Line]) -> list[Line]:
    """Put the older half of the changes behind all of them."""
    changes = [line for line in lines if _operation(line) not in {"", "r"}]
    numbers, taken = _numbers(changes), Counter[int]()
    older = []
    for line in changes:
        taken[line["p"]] += 1
        if taken[line["p"]] <= numbers[line["p"]] // 2:
            older.append(line)
    return appended(lines, older)
