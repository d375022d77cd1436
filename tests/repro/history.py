"""Run a history of ``data/`` step by step: what the topics hold grows from run to run."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from lakeingest.apply.run import run_pipeline
from lakeingest.apply.summary import RunSummary
from lakeingest.config import load_config
from tests.recordings.rust import DELETED, RustLake, queried

_DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class History:
    """A copy of a history that a test may run and change.

    Attributes:
        spark: The session.
        name: Its folder in ``data/``.
        folder: Where its copy and its lake lie.
    """

    spark: SparkSession
    name: str
    folder: Path

    def run(self, step: int, *settings: str) -> RunSummary:
        """Let the topics be those of a step, and run over them to the end.

        Args:
            step: From 1.
            settings: ``key=value``, over those of the history.
        """
        source = self.folder / "source"
        shutil.copytree(_DATA / self.name / f"step{step}", source, dirs_exist_ok=True)
        places = [
            f"lakeingest.source.path={source}",
            f"lakeingest.target.path={self.folder / 'lake'}",
            # Some begin at an offset above 0, as a topic does of which retention removed a part.
            "lakeingest.source.missing.head=accept",
        ]
        given = str(_DATA / self.name / "pipeline.properties")
        return run_pipeline(self.spark, load_config(given, [*places, *settings]))

    def ids(self, table: str) -> list[int]:
        """Return the keys of a published table, in order."""
        namespace, _, name = table.rpartition(".")
        newest = RustLake(self.folder / "lake", namespace).newest()
        assert newest is not None
        at = DeltaTable(str(self.folder / "lake" / table), version=newest.versions[name])
        return sorted(queried(at, f"SELECT id FROM t WHERE NOT {DELETED}")["id"])  # noqa: S608
