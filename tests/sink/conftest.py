"""The sinks under contract. A new sink joins by an entry in ``SINKS``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest
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


# By hand (`-m soak`), so that CI stays within its 40 minutes. In CI each has tests of what differs
# from its sibling: ``test_hudi.py`` in both table types, ``test_delta.py`` in both ways to commit.
_BY_HAND = {"hudi-cow": pytest.mark.soak, "delta-public": pytest.mark.soak}


@pytest.fixture(params=[pytest.param(name, marks=_BY_HAND.get(name, ())) for name in sorted(SINKS)])
def lakes(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Lakes:
    """Make a lake in the test's folder; ``hard`` and ``null_missing`` as the sink takes them."""
    make = SINKS[request.param]
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


@pytest.fixture(params=[pytest.param(name, marks=_BY_HAND.get(name, ())) for name in _PARTITIONED])
def partitioned(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Lakes:
    """Make a lake partitioned by ``by``; other options as the sink takes them."""
    make = SINKS[request.param]
    root = tmp_path / request.param

    def new(*by: str, **options: bool) -> Lake:
        lake = Lake(spark, lambda **chosen: make(spark, str(root), **chosen), options)
        lake.partition = by
        return lake

    return new


@pytest.fixture(params=["hudi-cow", "hudi-mor"])
def hudi_lake(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Lake:
    """Make a Hudi lake of either table type, for what only Hudi has."""
    root = tmp_path / request.param
    make = SINKS[request.param]
    return Lake(spark, lambda **chosen: make(spark, str(root), **chosen), {})
