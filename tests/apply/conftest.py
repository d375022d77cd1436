"""A published shop, of which each test that asks for it gets a copy."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.apply.shop import Shop, begun_shop


@pytest.fixture(scope="session")
def begun(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """Two transactions of two tables are published; to be copied."""
    return begun_shop(spark, tmp_path_factory.mktemp("begun"), "delta")


@pytest.fixture
def shop(begun: Shop, tmp_path: Path) -> Shop:
    """Two transactions of two tables are published."""
    return begun.copied(tmp_path)
