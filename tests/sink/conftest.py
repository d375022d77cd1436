"""The sinks under contract. A new sink joins by an entry in ``SINKS``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.sink.contract import Sink
from lakeingest.sink.delta import DeltaSink
from tests.sink.lake import NAMES, PIPELINE, Lake

Lakes = Callable[..., Lake]


def _delta(
    spark: SparkSession,
    root: str,
    *,
    hard: bool = False,
    null_missing: bool = False,
    pipeline: str = PIPELINE,
    direct: bool = True,
) -> Sink:
    return DeltaSink(
        spark, root, pipeline, NAMES, hard=hard, null_missing=null_missing, direct=direct
    )


SINKS: Mapping[str, Callable[..., Sink]] = {
    "delta": _delta,
    "delta-public": partial(_delta, direct=False),
}


@pytest.fixture(params=sorted(SINKS))
def lakes(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Lakes:
    """Make a lake in the test's folder; ``hard`` and ``null_missing`` as the sink takes them."""
    make = SINKS[request.param]
    root = tmp_path / "lake"

    def new(**options: bool) -> Lake:
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
