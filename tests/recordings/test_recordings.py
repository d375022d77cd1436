"""Recorded runs of real Debezium end as the tables of the real database, commit by commit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from lakeingest.apply.run import run_pipeline
from lakeingest.config import load_config
from lakeingest.demo import demo_folder
from lakeingest.folders import LEDGER_FOLDER
from lakeingest.reader import open_lake
from tests.recordings.altered import PartOracle, short_run
from tests.recordings.check import Report, check_history, check_run
from tests.recordings.configure import RecordedRun, packaged_run, recorded_run
from tests.recordings.known import uncounted
from tests.recordings.oracle import Totals
from tests.recordings.prefix import PrefixChecker
from tests.recordings.rust import RustLake, queried
from tests.recordings.totals import Publication, ReadBySpark
from tests.recordings.watcher import reader_of
from tests.sink.conftest import treat_as_large

pytestmark = pytest.mark.slow

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="module")
def demo() -> RecordedRun:
    """The packaged run: the same transactions as pg-shop-small/json-schema, without schemas."""
    return packaged_run()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("in-small-batches")


@pytest.fixture(scope="module")
def in_small_batches(spark: SparkSession, demo: RecordedRun, folder: Path) -> Report:
    """The packaged run ingested in batches of 5,000 events; several tests look at its lake."""
    settings = {"lakeingest.batch.max.events": "5000"}
    return check_run(spark, demo, folder, settings=settings, by_delta_rs=True)


def wrong(report: Report) -> list[str]:
    return [
        *report.history.violations,
        *(f"{table.table}: {said}" for table in report.tables for said in table.differences),
    ]


def test_every_publication_of_pg_shop_small_is_a_commit_prefix(in_small_batches: Report) -> None:
    assert in_small_batches.history.violations == ()
    assert in_small_batches.history.publications >= 3
    assert in_small_batches.history.last == in_small_batches.history.of == 979


def test_the_final_tables_of_pg_shop_small_are_those_of_the_database(
    in_small_batches: Report,
) -> None:
    assert wrong(in_small_batches) == []
    assert len(in_small_batches.tables) == 9
    assert in_small_batches.rows > 4000


@pytest.mark.soak
def test_a_second_run_finds_nothing_new_and_publishes_nothing(
    spark: SparkSession, demo: RecordedRun, in_small_batches: Report, folder: Path
) -> None:
    run_pipeline(spark, load_config(folder / "pipeline.properties"))
    again = check_history(demo, RustLake(folder / "lake", demo.namespace))
    assert again == in_small_batches.history


def test_a_snapshot_that_mixes_two_publications_is_found(
    demo: RecordedRun, in_small_batches: Report, folder: Path
) -> None:
    history = check_history(demo, Torn(RustLake(folder / "lake", demo.namespace), "txlog"))
    assert len(history.violations) >= in_small_batches.history.publications // 2
    assert "txlog." in history.violations[0]


def test_another_engine_reads_the_newest_publication_as_the_database_was(
    demo: RecordedRun, in_small_batches: Report, folder: Path
) -> None:
    lake = RustLake(folder / "lake", demo.namespace)
    newest = lake.newest()
    assert newest is not None
    checker = PrefixChecker(demo.oracle.commits or (), ignored=uncounted(demo.name, demo.form))
    place = checker.check("delta-rs", lake.totals(newest, checker.measures))
    assert checker.violations == []
    assert place is not None
    assert place.last == 979
    # Not so if one table were read a version behind the others.
    torn = replace(newest, versions={**newest.versions, "txlog": newest.versions["txlog"] - 1})
    assert checker.check("torn", lake.totals(torn, checker.measures)) is None


@pytest.mark.soak
def test_our_reader_shows_a_publication_between_as_another_engine_does(
    spark: SparkSession, demo: RecordedRun, in_small_batches: Report, folder: Path
) -> None:
    assert wrong(in_small_batches) == []
    ours = ReadBySpark(open_lake(spark, str(folder / "lake")), demo.namespace)
    measures = PrefixChecker(demo.oracle.commits or ()).measures
    between = ours.publications()[1:2]
    expected = list(RustLake(folder / "lake", demo.namespace).totals_of(between, measures))
    assert list(ours.totals_of(between, measures)) == expected


@pytest.mark.soak
@pytest.mark.parametrize("deletes", ["soft", "hard"])
def test_where_rows_are_hidden_each_publication_is_a_commit_and_the_tables_the_databases(
    spark: SparkSession,
    demo: RecordedRun,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    deletes: str,
) -> None:
    treat_as_large(monkeypatch)
    settings = {"lakeingest.batch.max.events": "1500", "lakeingest.deletes": deletes}
    report = check_run(spark, demo, tmp_path, settings=settings, by_delta_rs=True)
    assert wrong(report) == []
    assert report.history.publications >= 4
    vectors = {path.parent.name for path in (tmp_path / "lake").rglob("deletion_vector_*.bin")}
    assert len(vectors) >= 4


@pytest.mark.soak
@pytest.mark.parametrize(
    ("table_type", "batch", "end"),
    [("MERGE_ON_READ", 500, 90), ("COPY_ON_WRITE", 100_000, None), ("MERGE_ON_READ", 5_000, None)],
)
def test_on_hudi_each_publication_is_a_commit_and_the_tables_the_databases_for_others_too(
    spark: SparkSession, tmp_path: Path, table_type: str, batch: int, end: int | None
) -> None:
    run = short_run(tmp_path / "log", end, "documents", "order_lines") if end else packaged_run()
    settings = {
        "lakeingest.target.format": "hudi",
        "lakeingest.hudi.table.type": table_type,
        "lakeingest.batch.max.events": str(batch),
    }
    report = check_run(spark, run, tmp_path, settings=settings)
    assert wrong(report) == []
    assert report.history.publications >= (1 if batch > 20_000 else 2)
    assert report.history.last == report.history.of == (end or 979)
    watcher = reader_of(run, tmp_path / "lake", hudi=True)
    watcher.step()
    assert (watcher.violations, watcher.checks) == ([], 1)
    assert watcher.place is not None
    assert watcher.place.last == (end or 979)


@pytest.mark.soak
def test_tables_of_both_formats_and_in_any_folder_share_one_ledger(
    spark: SparkSession, tmp_path: Path
) -> None:
    run = short_run(tmp_path / "log", 100)
    table = "lakeingest.table.public"
    settings = {
        f"{table}.orders.format": "hudi",
        f"{table}.ledger.format": "hudi",
        f"{table}.orders.path": "sales/orders",
        f"{table}.carts.path": str(tmp_path / "elsewhere" / "carts"),
    }
    history = check_run(spark, run, tmp_path, settings=settings).history
    assert history.violations == ()
    assert history.last == history.of == 100
    assert (tmp_path / "lake" / "sales" / "orders" / ".hoodie").is_dir()
    assert (tmp_path / "elsewhere" / "carts" / "_delta_log").is_dir()
    assert not (tmp_path / "lake" / "public.carts").exists()
    assert (tmp_path / "lake" / "public.customers" / "_delta_log").is_dir()


def test_there_is_no_publication_where_there_is_no_lake(tmp_path: Path) -> None:
    assert RustLake(tmp_path, "public").newest() is None


@pytest.mark.soak
@pytest.mark.generated
def test_records_with_schemas_need_no_declared_tables(spark: SparkSession, tmp_path: Path) -> None:
    run = recorded_run(DATA / "pg-shop-small", "json-schema")
    assert not [key for key in run.configuration(tmp_path) if key.endswith(".schema")]
    assert wrong(check_run(spark, run, tmp_path)) == []


# CI has its rules in tests/transaction/test_completeness.py and tests/repro/test_killed.py.
@pytest.mark.soak
@pytest.mark.generated
def test_mariadb_kill_keeps_all_20001_rows_of_the_interrupted_transaction(
    spark: SparkSession, tmp_path: Path
) -> None:
    run, tables = recorded_run(DATA / "mariadb-kill"), ("bulk", "txlog")
    run = replace(run, tables=tables, oracle=PartOracle(run.oracle.folder, tables))
    # What comes before the giant shares its batch.
    settings = {"lakeingest.batch.max.events": "20700"}
    report = check_run(spark, run, tmp_path, settings=settings, by_delta_rs=True)
    assert wrong(report) == []
    assert epochs(tmp_path) == []
    # The giant's 20,000 rows of this table (its last row is in txlog), and 150 of three others.
    assert next(table.rows for table in report.tables if table.table == "bulk") == 20_150


@pytest.mark.soak
def test_redelivered_transactions_change_nothing(spark: SparkSession, tmp_path: Path) -> None:
    report = check_run(
        spark,
        recorded_run(DATA / "pg-kill-replay"),
        tmp_path,
        settings={"lakeingest.batch.max.events": "600"},
        by_delta_rs=True,
    )
    assert wrong(report) == []
    assert report.history.last == report.history.of
    assert epochs(tmp_path) == []


def epochs(folder: Path) -> list[str]:
    """Return the domains of the epochs that a lake's ledger tells of."""
    ledger = DeltaTable(str(folder / "lake" / LEDGER_FOLDER))
    columns = queried(ledger, "SELECT transaction_id FROM t WHERE kind = 'epoch'")
    return list(columns["transaction_id"])


def test_the_packaged_run_is_the_recorded_one() -> None:
    folder = demo_folder()
    for topic, facts in json.loads((folder / "manifest.json").read_text("utf-8"))["topics"].items():
        data = (folder / "topics" / f"{topic}.jsonl.gz").read_bytes()
        assert hashlib.sha256(data).hexdigest() == facts["sha256"], topic


@dataclass(frozen=True)
class Torn:
    """A lake whose publications show one table as it was a publication earlier."""

    lake: RustLake
    table: str

    def publications(self) -> Sequence[Publication]:
        publications = self.lake.publications()
        torn = []
        for whole, earlier in zip(publications, [publications[0], *publications[:-1]], strict=True):
            # The initial snapshot knows only the tables that had rows.
            versions = {t: v for t, v in earlier.versions.items() if t == self.table}
            torn.append(replace(whole, versions={**whole.versions, **versions}))
        return torn

    def totals_of(
        self, selection: Sequence[Publication], measures: Mapping[str, tuple[str, ...]]
    ) -> Iterator[tuple[Publication, Totals]]:
        return self.lake.totals_of(selection, measures)
