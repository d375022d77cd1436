"""A pipeline over raw events, transaction by transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from lakeingest.apply.run import run_pipeline
from lakeingest.config import load_config
from tests.config.settings import recorded
from tests.logs.raw_events import PREFIX, write_registry, written_log
from tests.recordings.rust import DELETED, RustLake, queried
from tests.recordings.totals import Publication

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
            **recorded(log, self._folder / "lake", PREFIX),
            "lakeingest.commit.max.transactions": "1",
            "lakeingest.types.guess": "accept",
            **settings,
        }
        run_pipeline(self._spark, load_config(configured), max_batches=batches)
        return self

    def rows(self, table: str, *columns: str) -> State:
        """Return the newest rows of a table: first column -> the others, as delta-rs reads."""
        newest = RustLake(self._folder / "lake", "public").newest()
        assert newest is not None
        return self._at(newest, table, columns)

    def history(self, table: str, *columns: str) -> list[State]:
        """Return the table's rows at each publication, without repetitions, as delta-rs reads."""
        states: list[State] = []
        for publication in RustLake(self._folder / "lake", "public").publications():
            if table not in publication.versions:
                continue
            state = self._at(publication, table, columns)
            if not states or states[-1] != state:
                states.append(state)
        return states

    def _at(self, publication: Publication, table: str, columns: Sequence[str]) -> State:
        folder, version = self._folder / "lake" / f"public.{table}", publication.versions[table]
        listed = ", ".join(f'"{name}"' for name in columns)
        query = f'SELECT {listed} FROM t WHERE NOT "{DELETED}"'  # noqa: S608
        read = queried(DeltaTable(str(folder), version=version), query)
        return _state(list(zip(*(read[name] for name in columns), strict=True)))


def _state(rows: Sequence[Any]) -> State:
    state = {row[0]: tuple(row[1:]) for row in rows}
    assert len(state) == len(rows), "a key stands in two rows"
    return state


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Callable[..., Lake]:
    """Ingest files of events: names of files, settings, and how many batches at most."""

    def ingested(
        *runs: str, settings: dict[str, str] | None = None, batches: int | None = None
    ) -> Lake:
        return Lake(spark, tmp_path / "one").of(*runs, settings=settings or {}, batches=batches)

    return ingested


def check_avro(avro: Lake) -> None:
    """Check the tables that the Avro log was written from."""
    left = dict.fromkeys(range(1001, 1011), ("x",))
    copied = {102: ("cp3",), 200: ("T1-1",), 201: ("T2-1",), 202: ("T1-2",), 203: ("T1-3",)}
    assert avro.history("a", "id", "v") == [
        {101: ("cp2",), **copied, 900: ("pre",), **left, 901: ("post",)},
        {**copied, 900: ("pre",), **left, 901: ("post",)},
    ]
    named = avro.rows("My-Tab", "id_x", "e1", "n2", "num", "b3")
    assert named == {id_: ("q", Decimal("3.10"), "12.5", bytearray(b"\x05")) for id_ in (1, 2)}
