"""One Spark session for all tests: its start costs seconds, a test in it milliseconds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from lakeingest.session import session
from tests.young_jvm import compile_quickly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


compile_quickly()

PARTS = {"broker", "chain", "connect", "mariadb", "postgres", "registry"}
"""Fixtures that start a database, a broker or a connector."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let tests that share a part share a worker, and so do tests of one file.

    One Spark session keeps little more than one core busy, so tests run in two workers
    (``pytest -n 2 --dist loadgroup``); a second set of databases would cost more than it brings.
    The parts' tests are the longest of all and begin first.
    """
    for item in items:
        group = "parts" if _uses_parts(item) else item.nodeid.partition("::")[0]
        item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: not _uses_parts(item))


def _uses_parts(item: pytest.Item) -> bool:
    return bool(PARTS & set(getattr(item, "fixturenames", ())))


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
