"""A pipeline over raw events, transaction by transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from lakeingest.apply.run import run_pipeline
from lakeingest.config import load_config
from lakeingest.reader import open_lake
from tests.recordings.rust import DELETED, RustLake, queried
from tests.vectors.wire import PREFIX, write_registry, written_log

State = dict[Any, tuple[Any, ...]]
"""Rows of a table by key."""


class Lake:
    """What the pipeline made of some files of events."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder

    def of(self, *runs: str, settings: Mapping[str, str], batches: int | None = None) -> Lake:
        """Ingest files of events, each source transaction in a publication of its own.

        Args:
            runs: Names of the files.
            settings: More of them, or others.
            batches: Stop after so many.
        """
        log = written_log(self._folder / "log", *runs)
        if settings.get("lakeingest.source.format") == "avro":
            write_registry(log)
        configured = {
            "lakeingest.pipeline.name": "vectors",
            "lakeingest.source.kind": "recorded",
            "lakeingest.source.path": str(log),
            "lakeingest.source.connector": "postgresql",
            "lakeingest.source.topic.prefix": PREFIX,
            "lakeingest.target.path": str(self._folder / "lake"),
            "lakeingest.commit.max.transactions": "1",
            "lakeingest.types.guess": "accept",
            **settings,
        }
        run_pipeline(self._spark, load_config(configured), max_batches=batches)
        return self

    def rows(self, table: str, *columns: str) -> State:
        """Return the newest rows of a table: first column -> the others."""
        snapshot = open_lake(self._spark, str(self._folder / "lake")).snapshot()
        return _state(snapshot.table(f"public.{table}").select(*columns).collect())

    def history(self, table: str, *columns: str) -> list[State]:
        """Return the table's rows at each publication, without repetitions, as delta-rs reads."""
        lake = self._folder / "lake"
        listed = ", ".join(f'"{name}"' for name in columns)
        query = f'SELECT {listed} FROM t WHERE NOT "{DELETED}"'  # noqa: S608
        found: list[State] = []
        for publication in RustLake(lake, "public").publications():
            if table not in publication.versions:
                continue
            at = DeltaTable(str(lake / f"public.{table}"), version=publication.versions[table])
            read = queried(at, query)
            rows = zip(*(read[name] for name in columns), strict=True)
            state = _state(list(rows))
            if not found or found[-1] != state:
                found.append(state)
        return found


def _state(rows: Sequence[Any]) -> State:
    found = {row[0]: tuple(row[1:]) for row in rows}
    assert len(found) == len(rows), "a key stands in two rows"
    return found


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Callable[..., Lake]:
    """Ingest files of events: names of files, settings, and how many batches at most."""

    def ingested(
        *runs: str, settings: dict[str, str] | None = None, batches: int | None = None
    ) -> Lake:
        return Lake(spark, tmp_path / "one").of(*runs, settings=settings or {}, batches=batches)

    return ingested
