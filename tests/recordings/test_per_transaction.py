"""One version of each table, and one publication, for each source transaction."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path

import delta_kernel_rust_sharing_wrapper as delta_kernel
import pytest
from delta.tables import DeltaTable
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from lakeingest.apply.maintenance.maintain import maintain_lake
from lakeingest.apply.run import run_pipeline
from lakeingest.commit_note import CommitNote
from lakeingest.config import load_config
from lakeingest.reader import open_lake
from tests.faults.test_between_versions import dying
from tests.forms import further
from tests.recordings.altered import short_run
from tests.recordings.check import check_history, check_run
from tests.recordings.configure import RecordedRun, packaged_run
from tests.recordings.log_lake import LogLake, TableLog
from tests.recordings.prefix import PrefixChecker
from tests.recordings.rust import DELETED, RustLake, measure_of
from tests.recordings.totals import Published, ReadBySpark

pytestmark = pytest.mark.slow

COMMITS = 110
TABLES = ("customers", "documents", "txlog")
"""The initial snapshot makes two of them, a transaction the third one."""
SAMPLED = (2, 40, 97, COMMITS + 1)

PER_TRANSACTION = {"lakeingest.commit.mode": "per-transaction"}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RecordedRun:
    return short_run(tmp_path_factory.mktemp("log") / "short", COMMITS, *TABLES)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, run: RecordedRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of two runs: the first dies when its tables are ahead by different amounts."""
    lake = tmp_path_factory.mktemp("per-transaction") / "lake"
    settings = {**run.configuration(lake), **PER_TRANSACTION}
    # The log of transactions is written to the batch's end. A batch follows the one that recovers.
    with pytest.MonkeyPatch.context() as patch, dying(patch, documents=3, customers=1):
        run_pipeline(spark, load_config({**settings, "lakeingest.commit.max.transactions": "24"}))
    run_pipeline(spark, load_config(settings))
    return lake


def test_each_publication_shows_the_next_commit_of_the_source(run: RecordedRun, lake: Path) -> None:
    history = check_history(run, LogLake(lake, run.namespace), most=1)
    assert (history.violations, history.publications) == ((), COMMITS + 1)
    assert history.last == history.of == COMMITS


def test_each_version_says_which_transaction_made_it(spark: SparkSession, lake: Path) -> None:
    ends = {row["end_offset"]: row for row in open_lake(spark, str(lake)).transactions().collect()}
    assert len(ends) == COMMITS
    for table in TABLES:
        log = TableLog(lake / f"public.{table}", ["count"], DELETED)
        notes = [CommitNote.from_json(info.get("userMetadata")) for _, _, info in log.versions()]
        of_transactions = [note for note in notes if note is not None and note.transaction]
        assert len(of_transactions) > 10
        for note in of_transactions:
            row = ends[note.end_offset]
            assert note.transaction == row["transaction_id"]
            assert note.committed_ms == int(row["committed_at"].timestamp() * 1000)
            assert note.batch == row["batch"]


@pytest.mark.parametrize(
    ("reader", "batches"),
    [further("spark", SAMPLED[-2:], id="spark"), pytest.param("delta-rs", SAMPLED, id="delta-rs")],
)
def test_other_readers_see_a_version_as_spark_does(
    spark: SparkSession, run: RecordedRun, lake: Path, reader: str, batches: Collection[int]
) -> None:
    readers: dict[str, Published] = {
        "spark": ReadBySpark(open_lake(spark, str(lake)), run.namespace),
        "delta-rs": RustLake(lake, run.namespace),
    }
    publications = LogLake(lake, run.namespace).publications()
    sampled = [publication for publication in publications if publication.batch in batches]
    assert run.oracle.commits is not None
    measures = PrefixChecker(run.oracle.commits).measures
    expected = list(LogLake(lake, run.namespace).totals_of(sampled, measures))
    assert list(readers[reader].totals_of(sampled, measures)) == expected


def test_delta_kernel_sees_the_newest_version_as_spark_does(run: RecordedRun, lake: Path) -> None:
    newest = LogLake(lake, run.namespace).publications()[-1]
    assert run.oracle.commits is not None
    measures = PrefixChecker(run.oracle.commits).measures
    [(_, expected)] = LogLake(lake, run.namespace).totals_of([newest], measures)
    for table in TABLES:
        url = f"{(lake / f'public.{table}').as_uri()}/"
        engine = delta_kernel.PythonInterface(url)
        at = delta_kernel.Table(url).snapshot(engine)
        assert at.version() == newest.versions[table]
        batches = delta_kernel.ScanBuilder(at).build().execute(engine)
        rows = [row for batch in batches for row in batch.to_pylist() if not row[DELETED]]
        columns = {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}
        for measure, total in expected[table].items():
            assert measure_of(measure, columns) == total, f"{table}.{measure}"


@pytest.mark.soak
def test_other_commands_find_a_table_like_any_other(
    spark: SparkSession, run: RecordedRun, lake: Path, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(lake, tmp_path / "lake"))
    place = f"delta.`{copy / 'public.customers'}`"
    config = load_config({**run.configuration(copy), **PER_TRANSACTION})
    [(before,)] = spark.sql(f"SELECT count(*) FROM {place}").collect()
    newest = DeltaTable.forName(spark, place).history(1).collect()[0]["version"]
    spark.sql(f"RESTORE TABLE {place} TO VERSION AS OF {newest // 2}")
    spark.sql(f"RESTORE TABLE {place} TO VERSION AS OF {newest}")
    spark.sql(f"OPTIMIZE {place}")
    # VACUUM lists in as many tasks as this, 10,000 unless it is told otherwise.
    tasks = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
    spark.conf.set(tasks, "2")
    try:
        spark.sql(f"VACUUM {place} RETAIN 168 HOURS")
    finally:
        spark.conf.unset(tasks)
    assert spark.sql(f"SELECT count(*) FROM {place}").collect() == [(before,)]
    maintain_lake(spark, config)
    history = check_history(run, LogLake(copy, run.namespace))
    assert (history.violations, history.last) == ((), COMMITS)
    # The next run finds that nobody changed a row.
    assert run_pipeline(spark, config).nothing_new


@pytest.mark.soak
def test_a_stream_of_a_table_is_refused_by_delta_and_not_wrong(
    spark: SparkSession, lake: Path, tmp_path: Path
) -> None:
    rows = spark.readStream.format("delta").option("startingVersion", 1)
    query = (
        rows.load(str(lake / "public.customers"))
        .writeStream.format("memory")
        .queryName("customers_of_versions")
        .option("checkpointLocation", str(tmp_path / "stream"))
        .trigger(availableNow=True)
        .start()
    )
    with pytest.raises(StreamingQueryException, match="DELTA_SOURCE_(TABLE_)?IGNORE|skipChange"):
        query.awaitTermination()


@pytest.mark.soak
def test_every_commit_of_pg_shop_small_has_its_publication(
    spark: SparkSession, tmp_path: Path
) -> None:
    report = check_run(spark, packaged_run(), tmp_path, settings=PER_TRANSACTION)
    assert report.good
    assert report.history.publications == 980
