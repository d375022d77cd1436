"""The sinks under contract. A new sink joins by an entry in ``SINKS``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet
from pyspark.sql import SparkSession

from lakeingest.engine.delta.log import TABLE_PROPERTIES
from lakeingest.sink.contract import Sink
from lakeingest.sink.delta import landing
from lakeingest.sink.delta.sink import DeltaSink
from lakeingest.sink.hudi.options import HudiSettings, TableType
from lakeingest.sink.hudi.sink import HudiSink
from tests.forms import further
from tests.sink.lake import Lake, sink_settings

Lakes = Callable[..., Lake]


def _delta(
    spark: SparkSession,
    root: str,
    *,
    direct: bool = True,
    deletion_vectors: bool = True,
    **options: Any,
) -> Sink:
    settings = sink_settings(root, **options)
    return DeltaSink(spark, settings, direct=direct, deletion_vectors=deletion_vectors)


def _hudi(
    spark: SparkSession,
    root: str,
    *,
    table_type: TableType,
    given: Mapping[str, str] | None = None,
    **options: Any,
) -> Sink:
    return HudiSink(spark, sink_settings(root, **options), HudiSettings(table_type, given or {}))


SINKS: Mapping[str, Callable[..., Sink]] = {
    "delta": _delta,
    "delta-public": partial(_delta, direct=False),
    "hudi-cow": partial(_hudi, table_type=TableType.COPY_ON_WRITE),
    "hudi-mor": partial(_hudi, table_type=TableType.MERGE_ON_READ),
}


def _in_ci(*names: str, of: Iterable[str] = SINKS) -> list[ParameterSet]:
    """Return sinks as parameters; the others of them run with ``--all``."""
    return [(pytest.param if name in names else further)(name) for name in sorted(of)]


# In CI, a test of what the merge law decides, or what all sinks have in common, runs on one sink
# (``lakes``), one of what a sink does itself on one sink of each format (``each_lakes``). What
# differs between the siblings of a format is in ``test_hudi.py`` (table types) and
# ``test_delta.py`` (ways to commit).
def _lake(spark: SparkSession, tmp_path: Path, name: str, **options: object) -> Lake:
    root, make = str(tmp_path / name / "lake"), SINKS[name]
    return Lake(spark, lambda **chosen: make(spark, root, **chosen), options)


@pytest.fixture(params=_in_ci("delta", of=(*SINKS, "delta-large")))
def lakes(
    spark: SparkSession,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> Lakes:
    """Make a lake in the test's folder; options as ``SinkSettings`` has them, or the sink."""
    if request.param == "delta-large":
        treat_as_large(monkeypatch)
        return partial(_lake, spark, tmp_path, "delta")
    return partial(_lake, spark, tmp_path, request.param)


def treat_as_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a Delta sink write every table as it writes one of many and large files."""
    monkeypatch.setattr(landing, "LARGE_ROWS", 0)
    monkeypatch.setattr(landing, "SMALL_FILES", 3)
    monkeypatch.setitem(TABLE_PROPERTIES, "delta.enableDeletionVectors", "true")


@pytest.fixture
def large_lake(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """Make a Delta lake whose table is written as a large one is."""
    treat_as_large(monkeypatch)
    return _lake(spark, tmp_path, "delta")


@pytest.fixture(params=_in_ci("delta", "hudi-mor"))
def each_lakes(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Lakes:
    """See ``lakes``."""
    return partial(_lake, spark, tmp_path, request.param)


@pytest.fixture
def delta_lake(spark: SparkSession, tmp_path: Path) -> Lake:
    """Make a Delta lake, for what only Delta has."""
    return _lake(spark, tmp_path, "delta")


@pytest.fixture(params=["delta", "delta-public"])
def either_lake(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Lake:
    """Make a Delta lake that commits directly, and one that uses the public API alone."""
    return _lake(spark, tmp_path, request.param)


_PARTITIONED = ("delta", "hudi-cow", "hudi-mor")


@pytest.fixture(params=_in_ci("hudi-mor", of=_PARTITIONED))
def partitioned(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Lakes:
    """Make a lake partitioned by ``by``; other options as the sink takes them."""
    return _partitioned(spark, tmp_path, request.param)


@pytest.fixture(params=_in_ci("delta", "hudi-mor", of=_PARTITIONED))
def each_partitioned(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Lakes:
    """See ``partitioned``."""
    return _partitioned(spark, tmp_path, request.param)


def _partitioned(spark: SparkSession, tmp_path: Path, name: str) -> Lakes:

    def new(*by: str, **options: bool) -> Lake:
        lake = _lake(spark, tmp_path, name, **options)
        lake.partition = by
        return lake

    return new


_HUDI = ("hudi-cow", "hudi-mor")


@pytest.fixture(params=_in_ci("hudi-mor", of=_HUDI))
def hudi_lake(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Lake:
    """Make a Hudi lake, for what only Hudi has."""
    return _lake(spark, tmp_path, request.param)
