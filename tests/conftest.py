"""One Spark session for all tests: its start costs seconds, a test in it milliseconds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from xdist.scheduler import LoadScopeScheduling

from lakeingest.session import session
from tests.harness import is_harness_test
from tests.reader.small_lake import small_lake
from tests.young_jvm import compile_quickly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


__all__ = ["small_lake"]

compile_quickly()

_PARTS = ("live", "oracles", "rig", "soak", "workloads")
_MORE_PARTS = (
    "recordings/test_hudi_streamer.py",
    "recordings/test_through_kafka.py",
    "source/test_kafka.py",
)


class ByParts(LoadScopeScheduling):  # type: ignore[misc]
    """Tests that start databases, brokers and connectors share a worker; others go by file.

    One Spark session keeps little more than one core busy, so tests run in two workers
    (``pytest -n 2``). A second set of databases would cost more than it brings. Rejected:
    ``--dist loadgroup``, which pytest-xdist 3.8 loses under pytest 9.
    """

    def _split_scope(self, nodeid: str) -> str:
        """Return what a test is sent to a worker with."""
        file = nodeid.partition("::")[0].removeprefix("tests/")
        parts = file.partition("/")[0] in _PARTS or file in _MORE_PARTS
        return "parts" if parts else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByParts:
    """Send tests to workers by what they share."""
    return ByParts(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the harness's own tests; begin with those of the parts: together they take longest."""
    for item in items:
        if is_harness_test(item.nodeid):
            item.add_marker("harness")
    items.sort(key=lambda item: not item.nodeid.startswith(tuple(f"tests/{p}/" for p in _PARTS)))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session that the library itself would start, small."""
    warehouse = tmp_path_factory.mktemp("warehouse")
    started = session(
        "lakeingest tests",
        cores=2,
        hudi=True,
        extra={
            "spark.sql.warehouse.dir": warehouse.as_uri(),
            "spark.driver.memory": "3g",
            # Delta keeps 10,000 tables' logs for an hour, at some 6 MB each: the tests' hundreds of
            # tables filled the heap until Spark ended its own JVM.
            "spark.databricks.delta.delta.log.cacheSize": "32",
        },
    )
    assert started.sparkContext.master == "local[2]"
    assert started.conf.get("spark.sql.shuffle.partitions") == "2"
    assert str(started.conf.get("spark.sql.warehouse.dir")).endswith(str(warehouse))
    yield started
    started.stop()
