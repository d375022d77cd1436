"""Keys that rows exchange in one statement, told apart without Debezium's headers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.apply.written import Sent, WrittenLog, table

pytestmark = pytest.mark.slow


def place(before: int, lsn: int) -> dict[str, Any]:
    return {"schema": "public", "table": "a", "lsn": lsn, "sequence": f'["{before}","{lsn}"]'}


def change(before: int, lsn: int, id_: int, v: int | None) -> Sent:
    return Sent("public.a", id_, v, place(before, lsn), None if v is None else "c")


def test_rows_that_exchange_keys_without_headers_both_stay(
    spark: SparkSession, tmp_path: Path
) -> None:
    """PostgreSQL checks a deferrable key at a statement's end: 1 goes to 2 while 2 is there."""
    log, lake = WrittenLog(tmp_path / "log", "postgresql"), tmp_path / "lake"
    log.transaction("1:100", *(change(0, 10 + id_, id_, id_ * 10) for id_ in (1, 2, 3)))
    log.ingest(spark, lake)
    log.transaction(
        "2:200",
        *(change(100, 150, 1, None), change(100, 150, 2, 10)),
        *(change(100, 160, 2, None), change(100, 160, 1, 20)),
        # A row that is deleted, and its key used again: no key change.
        *(change(100, 170, 3, None), change(100, 180, 3, 31)),
    )
    # In two statements the row goes on, and no row has key 1.
    log.transaction(
        "3:300",
        *(change(200, 250, 1, None), change(200, 250, 4, 20)),
        *(change(200, 260, 4, None), change(200, 260, 5, 20)),
    )
    log.ingest(spark, lake)
    assert table(spark, lake, "public.a") == {2: 10, 3: 31, 5: 20}
    log.ingest(spark, tmp_path / "again")
    assert table(spark, tmp_path / "again", "public.a") == {2: 10, 3: 31, 5: 20}
