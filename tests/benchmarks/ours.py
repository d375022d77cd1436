"""Ours, called as a user of the library calls it: one configuration, one ``run_pipeline``.

Nothing is switched off for the race: transactions are assembled from the transaction topic,
positions are stored, progress is committed with the data and every batch is published. Planning
and publishing are inside what is timed; only opening the generated log is not, as for the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame

import lakeingest
from lakeingest.apply.run import run_pipeline
from lakeingest.config import PipelineConfig, load_config
from tests.benchmarks.contestant import Stream
from tests.benchmarks.target import Target
from tests.benchmarks.workload import PREFIX, TABLES, Table
from tests.config.settings import recorded


@dataclass(frozen=True)
class Ours:
    """The pipeline, over as much of the log as it is shown."""

    into: Target = Target.DELTA
    name: str = "ours"

    def load(self, stream: Stream, target: Path) -> None:
        """Do nothing: the snapshot is published with the first transactions behind it."""

    def run(self, stream: Stream, target: Path) -> None:
        """Run until the log is used up."""
        run_pipeline(
            stream.spark, configuration(stream, target, self.into), source=stream.own_source
        )

    def table(self, stream: Stream, target: Path, table: Table) -> DataFrame:
        """Read the table at the last publication."""
        return lakeingest.open(stream.spark, str(target)).snapshot().table(table.collection)


def configuration(stream: Stream, target: Path, into: Target) -> PipelineConfig:
    """Return the configuration of a pipeline into ``target`` with the batch size of ``stream``."""
    return load_config(
        {
            **recorded(stream.folder.path, target, PREFIX),
            **into.properties,
            "lakeingest.batch.max.events": str(stream.batch_events),
            **{f"lakeingest.table.{table.collection}.schema": table.columns for table in TABLES},
        }
    )
