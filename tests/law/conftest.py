"""Empty tables for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.law.ingest import DDL, EachIngest, Ingest, Interrupt, delta_sink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


Tables = Callable[..., Callable[[], Ingest]]
"""Makes what makes new, empty tables, each in a folder of its own."""


@pytest.fixture
def tables(spark: SparkSession, tmp_path: Path) -> Tables:
    """Make new, empty tables."""
    numbers = count()

    def of(
        *,
        ddl: str = DDL,
        whole: bool = False,
        each: bool = False,
        interrupt: Interrupt | None = None,
        **ways: bool,
    ) -> Callable[[], Ingest]:
        def new() -> Ingest:
            root = tmp_path / f"lake{next(numbers)}"
            sink = delta_sink(spark, root, **{"hard": False, "null_missing": False, **ways})
            if not each:
                return Ingest(spark, sink, ddl=ddl, whole=whole)
            table = EachIngest(spark, sink, ddl=ddl, whole=whole)
            table.interrupt = interrupt
            return table

        return new

    return of
