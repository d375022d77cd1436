"""A table's keys are read of its own records alone, whatever Spark makes of the query.

Spark asks of each key column whether it is null, in the filter that picks the table's records, and
computes what several such conditions share before any of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakeingest.reader import open_lake
from tests.logs.written import WrittenLog, place_of

pytestmark = [pytest.mark.slow, pytest.mark.soak]

SCHEMAS = {
    "table.public.numbers.schema": "x INT, y INT, v BIGINT",
    "table.public.words.schema": "x STRING, y STRING, v BIGINT",
}


def inserted(log: WrittenLog, id_: str, lsn: int, **keys: tuple[Any, Any]) -> None:
    """Write a transaction that inserts a row into each table."""
    log.begin(f"{id_}:{lsn - 50}")
    for number, (name, (x, y)) in enumerate(keys.items(), 1):
        place = place_of(f"public.{name}", lsn, lsn - 50)
        block = {"id": f"{id_}:{lsn - 50}", "total_order": number, "data_collection_order": 1}
        value = {
            "before": None,
            "after": {"x": x, "y": y, "v": lsn},
            "source": {"name": "w", "ts_ms": 1_000, "snapshot": "false", **place},
            "transaction": block,
            "op": "c",
            "ts_ms": 1_000,
        }
        log.raw(f"public.{name}", {"x": x, "y": y}, value)
    log.end(f"{id_}:{lsn + 50}", {f"public.{name}": 1 for name in keys})


def test_records_of_a_table_with_other_types_are_not_read_as_keys(
    spark: SparkSession, log: WrittenLog, lake: Path
) -> None:
    inserted(log, "1", 100, numbers=(1, 1), words=("a", "b"))
    inserted(log, "2", 300, numbers=(9, 9), words=("c", "d"))
    log.ingest(spark, lake, **SCHEMAS)
    # Between rows that are there, so that the table's keys are looked at.
    inserted(log, "3", 500, numbers=(5, 5), words=("b", "c"))
    log.ingest(spark, lake, **SCHEMAS)
    shown = open_lake(spark, str(lake)).snapshot()
    numbers = {(row["x"], row["y"]) for row in shown.table("public.numbers").collect()}
    words = {(row["x"], row["y"]) for row in shown.table("public.words").collect()}
    assert numbers == {(1, 1), (5, 5), (9, 9)}
    assert words == {("a", "b"), ("b", "c"), ("c", "d")}
