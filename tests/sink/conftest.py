"""The sinks under contract. A new sink joins by an entry in ``SINKS``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakeingest.sink.contract import Sink
from lakeingest.sink.delta.sink import DeltaSink
from lakeingest.sink.hudi.options import HudiSettings, TableType
from lakeingest.sink.hudi.sink import HudiSink
from tests.sink.lake import Lake, sink_settings

Lakes = Callable[..., Lake]


def _delta(spark: SparkSession, root: str, *, direct: bool = True, **options: Any) -> Sink:
    return DeltaSink(spark, sink_settings(root, **options), direct=direct)


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


# By hand (`-m soak`), so that CI stays within its 40 minutes. In CI each has tests of what differs
# from its sibling: ``test_hudi.py`` in both table types, ``test_delta.py`` in both ways to commit.
_BY_HAND = {"hudi-cow": pytest.mark.soak, "delta-public": pytest.mark.soak}


def _params(*names: str) -> list[Any]:
    return [pytest.param(name, marks=_BY_HAND.get(name, ())) for name in names]


def _lake(spark: SparkSession, tmp_path: Path, name: str, **options: object) -> Lake:
    root, make = str(tmp_path / name / "lake"), SINKS[name]
    return Lake(spark, lambda **chosen: make(spark, root, **chosen), options)


@pytest.fixture(params=_params(*sorted(SINKS)))
def lakes(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Lakes:
    """Make a lake in the test's folder; options as ``SinkSettings`` has them, or the sink."""
    return partial(_lake, spark, tmp_path, request.param)


@pytest.fixture
def delta_lake(spark: SparkSession, tmp_path: Path) -> Lake:
    """Make a Delta lake, for what only Delta has."""
    return _lake(spark, tmp_path, "delta")


@pytest.fixture(params=["delta", "delta-public"])
def either_lake(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Lake:
    """Make a Delta lake that commits directly, and one that uses the public API alone."""
    return _lake(spark, tmp_path, request.param)


@pytest.fixture(params=_params("delta", "hudi-cow", "hudi-mor"))
def partitioned(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Lakes:
    """Make a lake partitioned by ``by``; other options as the sink takes them."""

    def new(*by: str, **options: bool) -> Lake:
        lake = _lake(spark, tmp_path, request.param, **options)
        lake.partition = by
        return lake

    return new


@pytest.fixture(params=["hudi-cow", "hudi-mor"])
def hudi_lake(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Lake:
    """Make a Hudi lake of either table type, for what only Hudi has."""
    return _lake(spark, tmp_path, request.param)
