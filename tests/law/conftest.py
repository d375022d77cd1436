"""Empty tables for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

from tests.law.ingest import DDL, EachIngest, Ingest, Interrupt, delta_sink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Tables(Protocol):
    """Makes what makes new, empty tables."""

    def __call__(
        self,
        *,
        hard: bool = False,
        null_missing: bool = False,
        direct: bool = True,
        hides: bool = True,
        ddl: str = DDL,
        whole: bool = False,
        each: bool = False,
        interrupt: Interrupt | None = None,
    ) -> Callable[[], Ingest]:
        """Return a maker of tables, each in a folder of its own."""


@pytest.fixture
def tables(spark: SparkSession, tmp_path: Path) -> Tables:
    """Make new, empty tables."""
    numbers = count()

    def of(
        *,
        hard: bool = False,
        null_missing: bool = False,
        direct: bool = True,
        hides: bool = True,
        ddl: str = DDL,
        whole: bool = False,
        each: bool = False,
        interrupt: Interrupt | None = None,
    ) -> Callable[[], Ingest]:
        def new() -> Ingest:
            root = tmp_path / f"lake{next(numbers)}"
            ways = {"direct": direct, "hides": hides}
            sink = delta_sink(spark, root, hard=hard, null_missing=null_missing, **ways)
            if not each:
                return Ingest(spark, sink, ddl=ddl, whole=whole)
            table = EachIngest(spark, sink, ddl=ddl, whole=whole)
            table.interrupt = interrupt
            return table

        return new

    return of
