"""The sinks under contract. A new sink joins by an entry in ``SINKS``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from pyspark.sql import SparkSession

from lakeingest.folders import LakeFolders
from lakeingest.sink.contract import Sink
from lakeingest.sink.delta.sink import DeltaSink
from lakeingest.sink.hudi.options import HudiSettings, TableType
from lakeingest.sink.hudi.sink import HudiSink
from tests.sink.lake import NAMES, PIPELINE, Lake

Lakes = Callable[..., Lake]


def _delta(
    spark: SparkSession,
    root: str,
    *,
    hard: bool = False,
    null_missing: bool = False,
    pipeline: str = PIPELINE,
    paths: Mapping[str, str] | None = None,
    direct: bool = True,
    foreign: bool = False,
) -> Sink:
    return DeltaSink(
        spark,
        LakeFolders(root, paths or {}),
        pipeline,
        NAMES,
        hard=hard,
        null_missing=null_missing,
        direct=direct,
        foreign=foreign,
    )


def _hudi(
    spark: SparkSession,
    root: str,
    *,
    table_type: TableType,
    hard: bool = False,
    null_missing: bool = False,
    pipeline: str = PIPELINE,
    paths: Mapping[str, str] | None = None,
    given: Mapping[str, str] | None = None,
    foreign: bool = False,
) -> Sink:
    settings = HudiSettings(table_type, given or {})
    return HudiSink(
        spark,
        LakeFolders(root, paths or {}),
        pipeline,
        NAMES,
        hard=hard,
        null_missing=null_missing,
        settings=settings,
        foreign=foreign,
    )


SINKS: Mapping[str, Callable[..., Sink]] = {
    "delta": _delta,
    "delta-public": partial(_delta, direct=False),
    "hudi-cow": partial(_hudi, table_type=TableType.COPY_ON_WRITE),
    "hudi-mor": partial(_hudi, table_type=TableType.MERGE_ON_READ),
}


def _in_ci(*names: str, of: Iterable[str] = SINKS) -> list[ParameterSet]:
    """Return sinks as parameters; the others of them run with ``--all``."""
    return [
        pytest.param(name, marks=() if name in names else pytest.mark.soak) for name in sorted(of)
    ]


# In CI, a test of what the merge law decides runs on one sink (``lakes``), one of what a sink does
# itself on one sink of each format (``each_lakes``). What differs between the siblings of a format
# is in ``test_hudi.py`` (table types) and ``test_delta.py`` (ways to commit).
@pytest.fixture(params=_in_ci("delta"))
def lakes(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Lakes:
    """Make a lake in the test's folder; ``hard`` and ``null_missing`` as the sink takes them."""
    return _lakes(spark, tmp_path, SINKS[request.param])


@pytest.fixture(params=_in_ci("delta", "hudi-mor"))
def each_lakes(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Lakes:
    """See ``lakes``."""
    return _lakes(spark, tmp_path, SINKS[request.param])


def _lakes(spark: SparkSession, tmp_path: Path, make: Callable[..., Sink]) -> Lakes:
    root = tmp_path / "lake"

    def new(**options: object) -> Lake:
        return Lake(spark, lambda **chosen: make(spark, str(root), **chosen), options)

    return new


@pytest.fixture
def delta_lake(spark: SparkSession, tmp_path: Path) -> Lake:
    """Make a Delta lake, for what only Delta has."""
    root = tmp_path / "lake"
    return Lake(spark, lambda **chosen: _delta(spark, str(root), **chosen), {})


@pytest.fixture
def public_lake(spark: SparkSession, tmp_path: Path) -> Lake:
    """Make a Delta lake that is written through the public API alone."""
    root = tmp_path / "lake"
    return Lake(spark, lambda **chosen: _delta(spark, str(root), direct=False, **chosen), {})


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
    make, root = SINKS[name], tmp_path / name

    def new(*by: str, **options: bool) -> Lake:
        lake = Lake(spark, lambda **chosen: make(spark, str(root), **chosen), options)
        lake.partition = by
        return lake

    return new


_HUDI = ("hudi-cow", "hudi-mor")


@pytest.fixture(params=_in_ci("hudi-mor", of=_HUDI))
def hudi_lake(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Lake:
    """Make a Hudi lake, for what only Hudi has."""
    return _hudi_lake(spark, tmp_path, request.param)


@pytest.fixture(params=_in_ci(*_HUDI, of=_HUDI))
def each_hudi_lake(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Lake:
    """Make a Hudi lake of each table type, for what differs between them."""
    return _hudi_lake(spark, tmp_path, request.param)


def _hudi_lake(spark: SparkSession, tmp_path: Path, name: str) -> Lake:
    make, root = SINKS[name], tmp_path / name
    return Lake(spark, lambda **chosen: make(spark, str(root), **chosen), {})
