"""A published shop, of which each test that asks for it gets a copy."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.logs.shop import Shop, begun_shop, opened_shop
from tests.logs.written import WrittenLog
from tests.shared_folder import shared_folder


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Where a lake may be written."""
    return tmp_path / "lake"


@pytest.fixture
def log(tmp_path: Path) -> WrittenLog:
    """A log of PostgreSQL that is to be written."""
    return WrittenLog(tmp_path / "log", "postgresql")


@pytest.fixture(scope="session")
def begun(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Shop:
    """Two transactions of two tables are published; to be copied."""

    def make(folder: Path) -> None:
        begun_shop(spark, folder, "delta")

    return opened_shop(spark, shared_folder(tmp_path_factory, worker_id, "begun", make), "delta")


@pytest.fixture
def shop(begun: Shop, tmp_path: Path) -> Shop:
    """Two transactions of two tables are published."""
    return begun.copied(tmp_path)
