"""Maintenance: every kept snapshot stays as it is, and nothing else stays."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import deltalake
import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

import lakeingest
from lakeingest.apply import lake, run
from lakeingest.apply.factory import open_ledger, open_sink
from lakeingest.apply.failpoints import MAINTENANCE_FAILPOINTS
from lakeingest.apply.maintenance import keeper, maintain
from lakeingest.apply.maintenance.keeper import Keeper
from lakeingest.apply.maintenance.maintain import Maintenance
from lakeingest.apply.maintenance.turn import turns_of
from lakeingest.config.model.pipeline import TargetConfig
from lakeingest.engine.delta import maintenance as delta_maintenance_engine
from lakeingest.engine.delta.log import newest_snapshot
from lakeingest.engine.delta.maintenance import DeltaMaintenance
from lakeingest.engine.hudi import table as hudi_table
from lakeingest.errors import ConfigError, DataError, UsageError
from lakeingest.folders import LEDGER_FOLDER
from lakeingest.ledger.publication import Publication
from lakeingest.ledger.retention import LedgerRetention
from lakeingest.reader import open_lake
from lakeingest.sink.contract import TableState, Upkeep
from lakeingest.sink.delta import maintenance as delta_maintenance
from lakeingest.sink.delta import rewrite
from lakeingest.sink.delta.sink import DeltaSink
from tests.apply.published import history
from tests.benchmarks.idle import aged, checkpoint
from tests.delta_log import forget_log
from tests.forms import with_all
from tests.logs.shop import Shop, row
from tests.logs.written import WrittenLog
from tests.recordings.rust import DELETED, queried

A, B = "public.a", "public.b"
FOR_EVER = timedelta(days=3_650)
FIRST = [row(A, 2, 1, 1, 10), row(B, 2, 2, 1, 11), row(A, 2, 3, 2, 20), row(B, 2, 4, 2, 21)]
"""The shop's first transaction."""

PUBLISHED = {
    1: {A: {1: 10, 2: 20}, B: {1: 11, 2: 21}},
    2: {A: {1: 10, 2: 20, 3: 30}, B: {1: 11, 2: 21}},
    3: {A: {2: 20, 3: 30}, B: {1: 11, 2: 21}},
}
"""What the shop's publications show, of which each test gets a copy (``grown``)."""

GROWN = PUBLISHED[3]

_MARKED = f'SELECT "id" FROM t WHERE "{DELETED}"'  # noqa: S608


@pytest.mark.parametrize(
    ("before", "batch", "names"),
    [
        (1, 9, ""),
        (9, 10, "b"),
        (10, 11, ""),
        (11, 20, "c"),
        (11, 31, "ac"),
        (100, 160, "abc"),
        (100, 190, "abc"),
        (0, 0, ""),
    ],
)
def test_each_table_has_its_turn(before: int, batch: int, names: str) -> None:
    """A window may hold the batches of several turns, also of a multiple of the tables."""
    assert turns_of(before, batch, 10, ["c", "a", "b"]) == list(names)
    assert turns_of(before, batch, 10, []) == []


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that lets everything expire at once, but for what it is given."""

    def set_retention(tombstones: timedelta | None = None, erases: bool = False) -> None:
        def opened(*args: Any) -> Keeper:
            made = keeper.open_keeper(*args)
            return replace(
                made, retention=timedelta(0), tombstones=tombstones, erases_values=erases
            )

        monkeypatch.setattr(maintain, "open_keeper", opened)
        monkeypatch.setattr("lakeingest.apply.maintenance.turn.open_keeper", opened)
        monkeypatch.setattr(delta_maintenance, "_MARGIN", timedelta(0))

    return set_retention


def maintained(shop: Shop) -> Maintenance:
    return lakeingest.maintain(shop.spark, shop.configured())


def head(shop: Shop) -> Publication:
    return open_ledger(shop.spark, shop.configured(), "").head()


def files(shop: Shop, name: str) -> set[str]:
    return {path.name for path in (shop.lake / name).glob("*.parquet")}


def read_files(shop: Shop, name: str) -> set[str]:
    frame = open_lake(shop.spark, str(shop.lake)).table(name)
    return {path.rpartition("/")[2] for path in frame.inputFiles()}


def keep_files(patch: pytest.MonkeyPatch) -> None:
    """Let a commit write a file for new rows, as in a large table: a small one is always one file.

    The engine's MERGE would do so, too, but each of its commits takes a second more.
    """
    for bound in ("TINY_BYTES", "WHOLE_BYTES"):
        patch.setattr(rewrite, bound, 0)


@pytest.fixture(scope="module")
def grown(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """Three publications of two tables, the second one idle since the first; to be copied."""
    folder = tmp_path_factory.mktemp("grown")
    shop = Shop(spark, WrittenLog(folder / "log", "postgresql"), folder / "lake", {}, number=2)
    shop.log.transaction("2:2100", *FIRST)
    shop.commit(a=30)
    delete(shop, 1)
    with pytest.MonkeyPatch.context() as patch:
        keep_files(patch)
        shop.run(commit_max_transactions="1")
    return shop


@pytest.fixture
def shop(grown: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """Three publications of two tables, the second one idle since the first."""
    keep_files(monkeypatch)
    return grown.copied(tmp_path)


@pytest.fixture
def ages(monkeypatch: pytest.MonkeyPatch) -> list[timedelta]:
    """Return the ages for which VACUUM keeps a table's files, instead of its deleting any."""
    given: list[timedelta] = []
    monkeypatch.setattr(DeltaMaintenance, "vacuum", lambda _, age: given.append(age))
    return given


@pytest.mark.slow
def test_small_files_are_joined_before_a_run_claims_and_every_kept_snapshot_shows_what_it_did(
    shop: Shop, ages: list[timedelta], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run has read the lake before, and goes on.

    A table that has moved is published where it lies, unless a command chose other tables.
    """
    (shop.lake / B).rename(shop.lake / "moved")
    shop.settings[f"table.{B}.path"] = "moved"
    maintenances = []
    assert len(read_files(shop, A)) > 1

    def take_over(*arguments: Any) -> lake.LakeState:
        monkeypatch.setattr(run, "take_over", lake.take_over)
        maintenances.append(maintained(shop))
        assert len(read_files(shop, A)) == 1
        assert shop.tables() == GROWN
        # Nothing is left to do.
        with monkeypatch.context() as patch:
            patch.setattr(Keeper, "expire", lambda *_: 1)
            assert maintained(shop) == maintenances[0]
        return lake.take_over(*arguments)

    monkeypatch.setattr(run, "take_over", take_over)
    shop.commit(a=60, b=61)
    assert shop.run().transactions == 1
    [done] = maintenances
    assert (done.batch, done.kept_from, done.waiting) == (4, 1, ())
    # Of A, B and the ledger.
    assert len(ages) == 3
    assert min(ages) >= timedelta(days=7)
    newest = {A: {**GROWN[A], 5: 60}, B: {**GROWN[B], 5: 61}}
    assert history(shop.spark, shop.lake) == {**PUBLISHED, 4: GROWN, 5: newest}
    tidy = Keeper.tidy
    monkeypatch.setattr(
        Keeper, "tidy", lambda of, states: (tidy(of, [*states][:1]), shop.retire())[0]
    )
    done = maintained(shop)
    assert (done.batch, done.kept_from, [*done.tables]) == (6, 0, [A])


@with_all
def test_erased_values_are_in_no_file_any_more(
    shop: Shop, at_once: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = f"delta.`{shop.lake / A}`"
    properties = "'delta.enableDeletionVectors' = 'true'"
    shop.spark.sql(f"ALTER TABLE {folder} SET TBLPROPERTIES ({properties})")
    delete(shop, 2)
    shop.run()
    published = shop.tables()
    # A file that is not small: UPDATE hides its row, and only a purge writes the file again.
    monkeypatch.setattr(DeltaMaintenance, "join_small_files", lambda _: None)
    at_once(erases=True)
    maintained(shop)
    assert deleted_rows(shop) == {1, 2}
    assert shop.tables() == published
    rows = shop.spark.read.parquet(*(str(shop.lake / A / name) for name in files(shop, A)))
    assert {r["v"] for r in rows.where("id IN (1, 2)").collect()} == {None}
    assert {r["v"] for r in rows.where("id = 3").collect()} == {30}


@pytest.mark.slow
def test_beside_a_run_old_publications_go_and_the_next_runs_turn_takes_files_and_tombstones_too(
    shop: Shop, at_once: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run has claimed the lake and publishes nothing; the next one publishes the files.

    The turn is the other table's, but files that are many are joined at once: a table that only
    grows would slow down each batch. Known transactions go with the tombstones.
    """
    at_once(tombstones=FOR_EVER)

    def of_a(command: Callable[..., None]) -> Callable[..., None]:
        # B has one file; of the ledger nothing is old enough, and its files are no matter here.
        return lambda table, *age: command(table, *age) if table._path.endswith(A) else None

    join, vacuum = DeltaMaintenance.join_small_files, DeltaMaintenance.vacuum
    monkeypatch.setattr(DeltaMaintenance, "join_small_files", of_a(join))
    ages: list[timedelta] = []
    monkeypatch.setattr(DeltaMaintenance, "vacuum", lambda _, age: ages.append(age))
    ledger = open_ledger(shop.spark, shop.configured(), "at work, or killed")
    ledger.claim(ledger.head())
    done = maintained(shop)
    assert (done.batch, done.kept_from, done.waiting) == (3, 3, (A,))
    assert history(shop.spark, shop.lake) == {3: GROWN}
    assert deleted_rows(shop) == {1}
    with pytest.raises(UsageError, match="Publication 1 is older.*from 3 on"):
        open_lake(shop.spark, str(shop.lake)).snapshot(as_of=1)
    # The history stays, and transactions that come again are known.
    assert kinds(shop) == {"publication": 3, "transaction": 3, "kept": 1}
    # What A had before it was tidied must stay; nothing of B is old.
    assert [age > timedelta(0) for age in ages[:2]] == [True, False]

    monkeypatch.setattr(DeltaMaintenance, "vacuum", of_a(vacuum))
    monkeypatch.setattr(delta_maintenance, "MANY_FILES", 2)
    at_once(tombstones=timedelta(0))
    assert turns_of(3, 4, 4, [A, B]) == [B]
    shop.commit(a=70)
    said = shop.run(maintain_batches="4")
    assert (said.transactions, said.warnings) == (1, ())
    assert history(shop.spark, shop.lake) == {5: {**GROWN, A: {**GROWN[A], shop.number: 70}}}
    assert deleted_rows(shop) == set()
    assert kinds(shop) == {"publication": 5, "kept": 1}
    for name in (A, B):
        assert files(shop, name) == read_files(shop, name)
        assert len(files(shop, name)) == 1
    shop.log.transaction("2:2100", *FIRST)
    shop.commit(a=70)
    with pytest.raises(DataError, match="are not in the ledger"):
        shop.run()


@pytest.mark.slow
def test_files_that_delta_no_longer_remembers_are_not_deleted(
    shop: Shop, at_once: Callable[..., None], ages: list[timedelta]
) -> None:
    """A version that another one followed long ago; a publication still names it."""
    folder = str(shop.lake / A)
    version = open_lake(shop.spark, str(shop.lake)).snapshot(as_of=2).versions[A]
    at_once()
    sink = open_sink(shop.spark, shop.configured())
    sink.expire(A, version, timedelta(0))
    assert len(ages) == 1
    properties = "'lakeingest.kept.since' = '2100-01-01T00:00:00+00:00'"
    shop.spark.sql(f"ALTER TABLE delta.`{folder}` SET TBLPROPERTIES ({properties})")
    sink.expire(A, version, timedelta(0))
    assert len(ages) == 1


@pytest.mark.slow
def test_a_table_that_was_made_lately_does_not_shorten_what_the_others_keep(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that was loaded anew: it has lost nothing of what publications need."""
    sink = open_sink(shop.spark, shop.configured())
    assert sink.kept_since(A) == datetime.min.replace(tzinfo=timezone.utc)
    now = datetime.now(timezone.utc)
    monkeypatch.setattr(delta_maintenance, "created_at", lambda *_: now - timedelta(days=60))
    assert now - timedelta(days=8) < sink.kept_since(A) < now


@pytest.mark.slow
def test_a_version_that_was_the_newest_for_long_keeps_its_place_in_the_log(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delta removes a commit by its own age, whenever the next one followed."""
    folder = str(shop.lake / A)
    table = DeltaMaintenance(shop.spark, folder, "")
    properties = "'delta.deletedFileRetentionDuration' = '6 days'"
    shop.spark.sql(f"ALTER TABLE delta.`{folder}` SET TBLPROPERTIES ({properties})")
    before, made = table.kept_since(), datetime.now(timezone.utc) - timedelta(days=60)
    versions = []

    def commit_time(_: SparkSession, __: str, version: int) -> datetime | None:
        versions.append(version)
        return made if version == 50 else None

    def checkpoint_before(_: SparkSession, __: str, version: int) -> int:
        return version - 23

    monkeypatch.setattr(delta_maintenance_engine, "commit_time", commit_time)
    monkeypatch.setattr(delta_maintenance_engine, "checkpoint_before", checkpoint_before)
    table.keep_for(timedelta(days=8), 73)
    # It is read from the checkpoint before it on.
    assert versions == [50, 73]
    detail = DeltaTable.forPath(shop.spark, folder).detail().first()
    assert detail is not None
    assert detail["properties"]["delta.deletedFileRetentionDuration"] == "interval 192 hours"
    log_hours = re.findall(r"\d+", detail["properties"]["delta.logRetentionDuration"])
    assert int(log_hours[0]) > 24 * (60 + 8)
    # What was removed earlier is forgotten, however long the table keeps it from now on.
    assert abs(table.kept_since() - before) < timedelta(minutes=1)
    version = newest_snapshot(shop.spark, folder).version()
    table.keep_for(timedelta(days=8), 73)
    assert newest_snapshot(shop.spark, folder).version() == version


@pytest.mark.slow
@pytest.mark.usefixtures("ages")
def test_the_ledgers_head_outlives_its_log_where_only_maintenance_writes(
    shop: Shop, at_once: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next version is one at which Delta writes a checkpoint, and removes what is old."""
    ledger = shop.lake / LEDGER_FOLDER
    frontier = head(shop).frontier
    checkpoint(shop.spark, ledger)
    aged(ledger / "_delta_log", 49, 0)
    for path in (ledger / "_delta_log").iterdir():
        os.utime(path, (0, 0))
    forget_log(shop.spark, ledger)
    at_once()
    # Without a better table there is nothing to publish.
    monkeypatch.setattr(Keeper, "tidy", lambda *_: {})
    monkeypatch.setattr(maintain, "clock_ms", lambda: 2**50)
    monkeypatch.setattr("lakeingest.ledger.delta.DeltaLedger.release", lambda *_: None)
    maintained(shop)
    version = newest_snapshot(shop.spark, str(ledger)).version()
    assert version >= 50
    # Now the lake is one whose run was killed: maintenance leaves the ledger alone.
    assert maintained(shop).kept_from == 0
    assert newest_snapshot(shop.spark, str(ledger)).version() == version
    assert shop.tables() == GROWN
    assert head(shop).frontier == frontier


@with_all
def test_a_table_that_a_run_keeps_writing_is_left_and_the_others_are_maintained(
    shop: Shop, at_once: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A publication while the ledger is maintained is no error, either."""
    at_once()
    tidy, attempts = DeltaSink._tidy, []
    conflict = RuntimeError("ConcurrentAppendException")

    def conflicting(sink: DeltaSink, state: TableState, upkeep: Upkeep) -> None:
        if state.note.collection == A:
            attempts.append(A)
            raise conflict
        tidy(sink, state, upkeep)

    before = history(shop.spark, shop.lake)
    monkeypatch.setattr(DeltaSink, "_tidy", conflicting)
    monkeypatch.setattr(DeltaMaintenance, "delete", Mock(side_effect=conflict))
    done = maintained(shop)
    assert done.waiting == (A,)
    assert len(attempts) == 5
    assert done.kept_from >= max(before)
    after = history(shop.spark, shop.lake)
    assert after[max(after)] == before[max(before)]


@with_all
def test_a_turn_that_fails_does_not_end_the_run(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = head(shop).writer
    monkeypatch.setattr(DeltaSink, "_tidy", Mock(side_effect=RuntimeError("the value of a row")))
    settings = {"maintain_batches": "1", "batch_max_events": "1", "window_max_records": "1"}
    for v in (60, 70, 80):
        shop.commit(a=v)
    summary = shop.run(**settings)
    assert summary.transactions == 3
    (warning,) = summary.warnings
    assert warning.startswith("Maintenance failed (RuntimeError), and the run went on.")
    assert shop.tables()[A][shop.number] == 80
    # It kept the lake, and released it at the end: the next run need not fence every table.
    left = head(shop)
    assert (left.released, left.writer) == (True, writer + 1)


@with_all
def test_a_turn_of_an_idle_table_that_another_writer_changed_does_not_end_the_run(
    shop: Shop,
) -> None:
    shop.spark.sql(f"UPDATE delta.`{shop.lake / B}` SET v = 0")
    for v in (60, 70, 80, 90):
        shop.commit(a=v)
    settings = {"maintain_batches": "1", "batch_max_events": "1", "window_max_records": "1"}
    summary = shop.run(**settings)
    assert summary.transactions == 4
    assert summary.warnings[0].startswith("Maintenance failed (")


class CrashError(Exception):
    """Stands for a kill."""


@with_all
def test_maintenance_that_a_crash_ended_anywhere_is_completed_by_the_next_runs(
    shop: Shop, at_once: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = GROWN
    at_once(tombstones=timedelta(0))
    monkeypatch.setattr(delta_maintenance, "MANY_FILES", 2)
    for place in MAINTENANCE_FAILPOINTS:

        def crash(name: str, place: str = place) -> None:
            if name == place:
                raise CrashError

        with monkeypatch.context() as crashing:
            crashing.setattr(keeper, "failpoint", crash)
            crashing.setattr("lakeingest.ledger.delta.DeltaLedger.release", lambda *_: None)
            with pytest.raises(CrashError):
                maintained(shop)
        assert shop.tables() == newest
        shop.commit(a=70)
        next_batch = head(shop).batch + 1
        is_last = place == MAINTENANCE_FAILPOINTS[-1]
        in_turn = {"maintain_batches": str(next_batch)} if is_last else {}
        said = shop.run(**in_turn)
        assert (said.transactions, said.warnings) == (1, ())
        newest = {**newest, A: {**newest[A], shop.number: 70}}
    assert history(shop.spark, shop.lake) == {next_batch + 1: newest}
    assert deleted_rows(shop) == set()
    assert kinds(shop) == {"publication": next_batch + 1, "kept": 1}
    for name in (A, B):
        assert files(shop, name) == read_files(shop, name)
        assert len(files(shop, name)) == 1


def delete(shop: Shop, id_: int) -> None:
    """Delete a row of the first table."""
    shop.number += 1
    place = row(A, shop.number, 1, id_, None)
    shop.log.transaction(f"{shop.number}:{1000 * shop.number + 100}", replace(place, op="d"))


def deleted_rows(shop: Shop) -> set[int]:
    """Return the keys of the rows of the first table that are marked as deleted."""
    return {*queried(deltalake.DeltaTable(str(shop.lake / A)), _MARKED)["id"]}


def kinds(shop: Shop) -> Counter[str]:
    """Return how many rows of each kind the ledger has."""
    ledger = deltalake.DeltaTable(str(shop.lake / LEDGER_FOLDER))
    return Counter(queried(ledger, "SELECT kind FROM t")["kind"])


def hudi_shop(spark: SparkSession, folder: Path, table_type: str, *values: int) -> Shop:
    """A publication of a Hudi table, and one for each value that its row gets."""
    settings = {"target_format": "hudi", "hudi_table_type": table_type}
    shop = Shop(spark, WrittenLog(folder / "log", "postgresql"), folder / "lake", settings)
    shop.commit(a=10)
    for v in values:
        # Of one key, so that every commit writes to the same file.
        shop.number += 1
        end = f"{shop.number}:{1000 * shop.number + 100}"
        shop.log.transaction(end, row(A, shop.number, 1, 1, v))
    shop.run(commit_max_transactions="1")
    return shop


@pytest.mark.slow
def test_log_files_of_hudi_tables_are_compacted(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    after_two = {"hoodie.compact.inline.max.delta.commits": "2"}
    monkeypatch.setattr(TargetConfig, "hudi_writer_options", lambda _: after_two)
    # The ledger is a Delta table in any lake.
    monkeypatch.setattr(LedgerRetention, "expire", lambda *_: None)
    shop = hudi_shop(spark, tmp_path, "MERGE_ON_READ", 30)
    done = maintained(shop)
    operations = [commit.operation for commit in hudi_table.commits(spark, str(shop.lake / A))]
    assert operations[0] == "COMPACT"
    assert (done.batch, done.kept_from, done.waiting) == (3, 1, ())
    shop.commit(a=100)
    assert shop.run().transactions == 1
    snapshots = open_lake(spark, str(shop.lake)).snapshots()
    of_a = [sorted((r["id"], r["v"]) for r in one.table(A).collect()) for one in snapshots]
    assert of_a == [[(1, 10)], [(1, 30)], [(1, 30)], [(1, 30), (3, 100)]]


@with_all
def test_files_of_hudi_tables_go_that_no_kept_publication_needs(
    spark: SparkSession, tmp_path: Path, at_once: Callable[..., None]
) -> None:
    shop = hudi_shop(spark, tmp_path, "COPY_ON_WRITE", 20, 30)
    before, base_files = history(shop.spark, shop.lake), set((shop.lake / A).glob("*.parquet"))
    maintained(shop)
    assert history(shop.spark, shop.lake) == before
    at_once()
    done = maintained(shop)
    assert history(shop.spark, shop.lake) == {done.batch: before[done.batch]}
    # Hudi keeps the files of the commit before the oldest one that is kept.
    assert len({path for path in base_files if path.exists()}) == 2
    shop.commit(a=100)
    assert shop.run().transactions == 1
    assert shop.tables()[A] == {1: 30, 4: 100}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"target_format": "hudi", "deletes_values": "null"}, r"lakeingest\.deletes\.values=null"),
        (
            {"transaction_mode": "none", "tombstone_retention_hours": "24"},
            r"lakeingest\.tombstone\.retention\.hours: with lakeingest\.transaction\.mode=none",
        ),
    ],
)
def test_settings_that_maintenance_cannot_follow_are_refused(
    log: WrittenLog, lake: Path, settings: Mapping[str, str], message: str
) -> None:
    log.folder.mkdir()
    with pytest.raises(ConfigError, match=message):
        log.configured(lake, **settings)
