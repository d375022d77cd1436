"""Keys that rows exchange in one statement, told apart without Debezium's headers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.apply.published import table
from tests.logs.written import Sent, WrittenLog, place_of

pytestmark = pytest.mark.slow


TABLES = ("public.a", "public.b")


def changes(
    before: int, *changed: tuple[int, int, int | None], tables: Sequence[str] = TABLES
) -> Iterator[Sent]:
    """Yield changes of a transaction, in each table the same: LSN, key, value or none."""
    for name in tables:
        for lsn, id_, v in changed:
            yield Sent(name, id_, v, place_of(name, lsn, before), None if v is None else "c")


def test_rows_that_exchange_keys_without_headers_both_stay(
    spark: SparkSession, log: WrittenLog, lake: Path
) -> None:
    """PostgreSQL checks a deferrable key at a statement's end: 1 goes to 2 while 2 is there."""
    for id_ in (1, 2, 3):
        created = changes(10 * id_, (10 * id_ + 5, id_, 10 * id_), tables=TABLES[:1])
        log.transaction(f"{id_}:{10 * id_ + 10}", *created)
    # The rows of b come in the batch in which they change, the second one.
    created = changes(40, (50, 1, 10), (60, 2, 20), (70, 3, 30), tables=TABLES[1:])
    log.transaction("4:101", *created)
    exchanged = (150, 1, None), (150, 2, 10), (160, 2, None), (160, 1, 20)
    # A row that is deleted, and its key used again: no key change.
    log.transaction("5:200", *changes(101, *exchanged, (170, 3, None), (180, 3, 31)))
    # In two statements the row goes on, and no row has key 1.
    moved = (250, 1, None), (250, 4, 20), (260, 4, None), (260, 5, 20)
    log.transaction("6:300", *changes(200, *moved))
    assert log.ingest(spark, lake, commit_max_transactions="3").batches == 2
    for name in TABLES:
        assert table(spark, lake, name) == {2: 10, 3: 31, 5: 20}
