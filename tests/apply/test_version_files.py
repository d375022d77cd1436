"""What a batch of versions leaves beside them: vectors, a checksum, a checkpoint."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.maintenance.keeper import Keeper
from lakeingest.engine.delta import vector_file
from lakeingest.engine.delta import versions as delta_versions
from lakeingest.engine.delta.log import commit_name
from lakeingest.engine.delta.snapshot import cached_snapshot
from lakeingest.engine.in_turn import InTurn
from lakeingest.reader import open_lake
from lakeingest.sink.contract import TableState
from tests.apply.published import history
from tests.delta_log import forget_log
from tests.forms import further
from tests.logs.written import WrittenLog, change

pytestmark = pytest.mark.slow

EACH = {"commit_mode": "per-transaction"}
A = "public.a"


def ingest(
    spark: SparkSession, log: WrittenLog, lake: Path, first: int, last: int, **settings: str
) -> None:
    """Write transactions that each change row 1, and run over them."""
    for number in range(first, last + 1):
        log.transaction(f"{number}:{number}00", change("a", 100 * number))
    log.ingest(spark, lake, **EACH, **settings)


def values(spark: SparkSession, lake: Path) -> list[int]:
    """Return the value of the only row in each publication."""
    shown = [tables[A] for tables in history(spark, lake).values()]
    assert all(rows.keys() == {1} for rows in shown)
    return [rows[1] for rows in shown]


def newest_entry(lake: Path) -> Path:
    return max((lake / A / "_delta_log").glob("*.json"))


@pytest.mark.soak
def test_a_file_of_vectors_is_followed_by_another_one_before_it_is_too_large(
    spark: SparkSession, log: WrittenLog, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_file, "_MOST_OCTETS", 50)
    ingest(spark, log, lake, 1, 6)
    assert len(list((lake / A).glob("*.bin"))) > 2
    assert values(spark, lake) == [100, 200, 300, 400, 500, 600]


@pytest.mark.soak
def test_a_checksum_that_got_lost_is_there_again_after_the_next_batch(
    spark: SparkSession, log: WrittenLog, lake: Path
) -> None:
    ingest(spark, log, lake, 1, 3)
    newest_entry(lake).with_suffix(".crc").unlink()
    forget_log(spark, lake / A)
    ingest(spark, log, lake, 4, 6)
    checksum = json.loads(newest_entry(lake).with_suffix(".crc").read_text("utf-8"))
    assert checksum["numFiles"] == len(spark.read.format("delta").load(str(lake / A)).inputFiles())
    assert len(checksum["allFiles"]) == checksum["numFiles"]
    assert values(spark, lake) == [100, 200, 300, 400, 500, 600]


@pytest.mark.soak
def test_the_newest_version_is_read_without_a_search_after_a_batch_of_versions(
    spark: SparkSession, log: WrittenLog, lake: Path
) -> None:
    ingest(spark, log, lake, 1, 4)
    rows = cached_snapshot(spark, str(lake / A), int(newest_entry(lake).stem))
    assert rows is not None
    assert [row["v"] for row in rows.collect()] == [400]


@pytest.mark.soak
def test_a_run_ends_with_its_checkpoints(
    spark: SparkSession, log: WrittenLog, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delta_versions, "_CHECKPOINT_EVERY", 3)
    ingest(spark, log, lake, 1, 6)
    pointer = json.loads((lake / A / "_delta_log" / "_last_checkpoint").read_text("utf-8"))
    assert pointer["version"] == int(newest_entry(lake).stem)


@pytest.mark.soak
def test_a_checkpoint_is_written_while_a_listing_shows_an_entry_without_the_one_before_it(
    spark: SparkSession, log: WrittenLog, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces: list[Callable[[], None]] = []
    monkeypatch.setattr(delta_versions, "_CHECKPOINT_EVERY", 3)
    monkeypatch.setattr(InTurn, "begin", lambda *arguments: pieces.append(arguments[-1]))
    ingest(spark, log, lake, 1, 6)
    newest = newest_entry(lake)
    version = int(newest.stem)
    shutil.copy(newest, newest.with_name(commit_name(version + 2)))
    for piece in pieces:
        piece()
    assert json.loads((newest.parent / "_last_checkpoint").read_text("utf-8"))["version"] == version


@pytest.mark.soak
@pytest.mark.parametrize(("batches", "turns"), [(2, 1), further(4, 0)])
def test_a_turn_of_maintenance_comes_after_batches_and_not_after_transactions(
    spark: SparkSession,
    log: WrittenLog,
    lake: Path,
    monkeypatch: pytest.MonkeyPatch,
    batches: int,
    turns: int,
) -> None:
    tidied: list[str] = []

    def tidy(_: Keeper, tables: Iterable[TableState]) -> dict[str, TableState]:
        tidied.extend(table.note.collection for table in tables)
        return {}

    monkeypatch.setattr(Keeper, "tidy", tidy)
    monkeypatch.setattr(Keeper, "expire", lambda *_: None)
    ingest(spark, log, lake, 1, 1)
    assert open_lake(spark, str(lake)).snapshot().batch == 1
    ingest(spark, log, lake, 2, 6, maintain_batches=str(batches), commit_max_transactions="3")
    assert open_lake(spark, str(lake)).snapshot().batch == 6
    # Five transactions are two batches: of three, and of two.
    assert len(tidied) == turns
