"""Two initial snapshots in the first reading: what lies between them must not stay."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.batch import writer
from lakeingest.errors import DataError
from tests.apply.crash import crashing_at
from tests.apply.published import table
from tests.forms import further
from tests.logs.written import Sent, WrittenLog, place_of

pytestmark = pytest.mark.slow


def row(
    name: str, id_: int, v: int | None, at: int, mark: str | None = None, ms: int | None = None
) -> Sent:
    more = {"snapshot": mark} if mark else {}
    place = place_of(f"public.{name}", at, None if mark else at - 10, ts_ms=ms or at, **more)
    return Sent(f"public.{name}", id_, v, place, "r" if mark else None)


def snapshot(
    log: WrittenLog, at: int, tables: dict[str, dict[int, int]], ms: int | None = None
) -> None:
    """Write a whole snapshot, all of its rows at one place of the log."""
    sent = [(name, id_, v) for name, rows in tables.items() for id_, v in rows.items()]
    for place, (name, id_, v) in enumerate(sent):
        ended = place == len(sent) - 1 or sent[place + 1][0] != name
        mark = "last" if place == len(sent) - 1 else "last_in_data_collection" if ended else "true"
        log.put(row(name, id_, v, at, mark if place else "first", ms))


@pytest.mark.soak
@pytest.mark.parametrize(
    ("mode", "runs"),
    [
        ("metadata", (None, None)),
        *product(("metadata", "none"), (("one", "two"), ("one", None), (None, "two"))),
    ],
)
def test_a_snapshot_after_streamed_changes_is_refused_in_the_first_reading_too(
    spark: SparkSession, log: WrittenLog, lake: Path, mode: str, runs: tuple[str | None, ...]
) -> None:
    log.run = runs[0]
    snapshot(log, 100, {"a": {1: 10, 2: 20, 3: 30}})
    log.transaction("7:210", row("a", 1, 11, 200))
    # Not seen: 2 is deleted, 1 is changed again.
    log.run = runs[1]
    snapshot(log, 500, {"a": {1: 12, 3: 30}})
    log.transaction("9:610", row("a", 3, 31, 600))
    message = r"a new initial snapshot(.|\n)*lakeingest\.source\.snapshot\.again=replace"
    with pytest.raises(DataError, match=message):
        log.ingest(spark, lake, transaction_mode=mode)
    assert not (lake / "public.a").exists()
    if None in runs and mode == "metadata":
        with pytest.raises(DataError, match="rows have no header"):
            log.ingest(spark, lake, source_snapshot_again="replace")


@pytest.mark.soak
def test_two_whole_snapshots_larger_than_a_window_are_read_on(
    spark: SparkSession, log: WrittenLog, lake: Path
) -> None:
    log.run = "one"
    many = {number: number for number in range(150)}
    snapshot(log, 100, {"b": many, "a": {1: 10, 2: 20}})
    log.run = "two"
    del many[7]
    snapshot(log, 200, {"b": many, "a": {1: 11}})
    log.transaction("9:610", row("a", 1, 31, 600))
    log.ingest(spark, lake, window_max_records="100", batch_max_events="100")
    assert table(spark, lake, "public.a") == {1: 31}
    assert table(spark, lake, "public.b") == many


@pytest.mark.parametrize("mode", ["metadata", further("none")])
def test_rows_of_a_replaced_snapshot_that_a_killed_run_wrote_are_not_published(
    spark: SparkSession, log: WrittenLog, lake: Path, mode: str
) -> None:
    log.run = "one"
    snapshot(log, 100, {"a": {1: 10, 2: 20}, "b": {5: 50}})
    # Of a table that is not read: it shows that the snapshot is over.
    log.transaction("7:150")
    with crashing_at("3.after-last-commit", writer):
        log.ingest(spark, lake, transaction_mode=mode)
    # Not seen: 2 is deleted, b is empty.
    log.run = "two"
    snapshot(log, 500, {"a": {1: 12}, "b": {6: 60}})
    log.transaction("9:610", row("a", 1, 13, 600))
    log.ingest(spark, lake, transaction_mode=mode)
    assert table(spark, lake, "public.a") == {1: 13}
    assert table(spark, lake, "public.b") == {6: 60}
