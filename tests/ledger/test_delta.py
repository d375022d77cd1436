"""Who writes, and how far the lake is, whatever drivers did to one another."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakeingest.commit_note import token
from lakeingest.engine.commit import Commit
from lakeingest.engine.delta.log import commits
from lakeingest.engine.own_session import own_session
from lakeingest.errors import FencedError
from lakeingest.folders import LEDGER_FOLDER
from lakeingest.ledger import delta
from lakeingest.ledger.delta import DeltaLedger
from lakeingest.ledger.publication import PUBLICATION, Frontier, Publication
from lakeingest.ledger.rows import publication_rows, transaction_rows
from lakeingest.reader import open_lake
from tests.forms import further
from tests.recordings.rust import queried

TRANSACTION = (
    "id string, end_offset bigint, end_position string, committed_at timestamp, event_count bigint,"
    " collections array<struct<data_collection: string, event_count: bigint>>"
)


DIRECT = pytest.mark.parametrize("direct", [True, further(False)])
"""Whether an append is lakeingest's own; a fence in the other kind is met by the first test."""


@pytest.fixture
def transactions(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([("7:100", 3, "0001", None, 1, [("public.a", 1)])], TRANSACTION)


def driver(spark: SparkSession, folder: Path, run: str, *, direct: bool = True) -> DeltaLedger:
    return DeltaLedger(spark, str(folder / "ledger"), "shop", run, direct=direct)


def following(head: Publication, run: str) -> Publication:
    """Return the batch after ``head``, as its driver publishes it."""
    batch = head.batch + 1
    frontier = Frontier(end_offset=batch, end_position=f"{batch:04}")
    of_batch = token(head.writer, batch)
    tables = {"a": batch}
    return replace(head, batch=batch, token=of_batch, run=run, tables=tables, frontier=frontier)


def files_of(ledger: Path) -> list[str]:
    return sorted(deltalake.DeltaTable(str(ledger)).file_uris())


@pytest.mark.parametrize("direct", [True, False])
def test_a_claim_brings_what_another_driver_published_since_the_head_was_read(
    spark: SparkSession, tmp_path: Path, transactions: DataFrame, direct: bool
) -> None:
    first, second = (driver(spark, tmp_path, run, direct=direct) for run in ("first", "second"))
    entry = first.claim(first.head())
    read_too_early = second.head()
    entry = following(entry, "first")
    first.publish([entry], transactions)
    taken = second.claim(read_too_early)
    assert (taken.batch, taken.run, taken.writer) == (1, "second", entry.writer + 1)
    assert (taken.tables, taken.frontier) == (entry.tables, entry.frontier)
    with pytest.raises(FencedError):
        first.publish([following(entry, "first")], transactions)


def test_a_claim_that_knew_too_little_takes_no_publication_back(
    spark: SparkSession, tmp_path: Path, transactions: DataFrame
) -> None:
    first = driver(spark, tmp_path, "first")
    entry = following(first.claim(first.head()), "first")
    read_too_early = first.head()
    first.publish([entry], transactions)
    # Killed right after its claim, which repeats what it had read.
    driver(spark, tmp_path, "second").claim(read_too_early)
    head = driver(spark, tmp_path, "third").head()
    assert (head.batch, head.tables, head.frontier) == (1, entry.tables, entry.frontier)
    assert (head.run, head.writer) == ("second", entry.writer + 1)


@DIRECT
def test_a_driver_that_knew_too_little_claims_what_was_released_meanwhile(
    spark: SparkSession, tmp_path: Path, transactions: DataFrame, direct: bool
) -> None:
    first, second = (driver(spark, tmp_path, run, direct=direct) for run in ("first", "second"))
    read_too_early = second.head()
    entry = following(first.claim(first.head()), "first")
    first.publish([entry], transactions)
    first.release(entry)
    taken = second.claim(read_too_early)
    assert (taken.batch, taken.tables, taken.frontier) == (1, entry.tables, entry.frontier)
    assert (taken.writer, taken.released) == (entry.writer + 1, True)
    # The claim repeats that head, so it can stand alone, and the driver can release the ledger.
    assert driver(spark, tmp_path, "third", direct=direct).head().read_at == taken.read_at
    second.release(taken)
    head = first.head()
    assert (head.released, head.writer, head.batch) == (True, taken.writer, 1)
    driver(spark, tmp_path, "third", direct=direct).claim(head)
    # Whoever has claimed and not released shuts the others out.
    with pytest.raises(FencedError):
        second.claim(read_too_early)


@DIRECT
def test_a_release_tells_the_next_driver_that_nobody_writes_until_somebody_claims(
    spark: SparkSession, tmp_path: Path, transactions: DataFrame, direct: bool
) -> None:
    first, second = (driver(spark, tmp_path, run, direct=direct) for run in ("first", "second"))
    entry = following(first.claim(first.head()), "first")
    first.publish([entry], transactions)
    assert not second.head().released
    files = files_of(tmp_path / "ledger")
    first.release(entry)
    released = second.head()
    assert (released.released, released.batch, released.frontier) == (True, 1, entry.frontier)
    # Who released must claim again before it writes.
    with pytest.raises(FencedError):
        first.publish([following(entry, "first")], transactions)
    taken = second.claim(released)
    assert (taken.released, taken.tables, taken.run) == (True, entry.tables, "second")
    # Neither a claim nor a release is a file.
    assert files_of(tmp_path / "ledger") == files
    third = driver(spark, tmp_path, "third", direct=direct)
    assert not third.head().released
    assert not third.claim(third.head()).released
    second.release(taken)
    assert not third.head().released


def test_a_driver_that_was_overtaken_or_knows_too_little_releases_nothing(
    spark: SparkSession, tmp_path: Path, transactions: DataFrame
) -> None:
    first = driver(spark, tmp_path, "first")
    claimed = first.claim(first.head())
    first.release(claimed)
    first.publish([following(claimed, "first")], transactions)
    first.release(claimed)
    head = driver(spark, tmp_path, "second").head()
    assert (head.batch, head.released) == (1, False)


def test_every_hundredth_publication_joins_the_ledgers_files_and_no_row_is_lost(
    spark: SparkSession, tmp_path: Path, transactions: DataFrame
) -> None:
    first = driver(spark, tmp_path / "_lakeingest", "first")
    entry = replace(first.claim(first.head()), batch=98)
    beside = driver(spark, tmp_path / "_lakeingest", "first")
    for _ in range(2):
        entry = following(entry, "first")
        first.publish([entry], transactions)
    path = tmp_path / LEDGER_FOLDER
    assert len(files_of(path)) == 1
    ledger = deltalake.DeltaTable(str(path))
    assert ledger.metadata().configuration["delta.logRetentionDuration"] == "interval 2 days"
    kinds = queried(ledger, "SELECT kind FROM t")["kind"]
    assert sorted(kinds) == ["publication", "publication", "transaction", "transaction"]
    assert open_lake(spark, str(tmp_path)).snapshot().batch == 100
    assert first.unknown_ends(["0001"]) == 0
    assert first.unknown_ends(["0001", "0002"]) == 1
    entry = following(beside.head(), "first")
    assert entry.batch == 101
    first.publish([entry], transactions)


@pytest.mark.parametrize("published", [True, further(False)])
def test_runs_that_claimed_and_failed_are_not_all_looked_at_by_the_next(
    spark: SparkSession,
    tmp_path: Path,
    transactions: DataFrame,
    monkeypatch: pytest.MonkeyPatch,
    published: bool,
) -> None:
    first = driver(spark, tmp_path, "first")
    entry = first.claim(first.head())
    if published:
        entry = following(entry, "first")
        first.publish([entry], transactions)
    for run in range(3):
        failing = driver(spark, tmp_path, f"failing-{run}")
        failing.claim(failing.head())
    looked_at = []

    def counted(*arguments: Any) -> Iterator[Commit]:
        for commit in commits(*arguments):
            looked_at.append(commit.version)
            yield commit

    monkeypatch.setattr(delta, "commits", counted)
    head = driver(spark, tmp_path, "next").head()
    assert (head.batch, head.tables, head.run) == (entry.batch, entry.tables, "failing-2")
    assert len(looked_at) == 1


def test_looks_at_recent_transactions_and_the_newest_publication_open_no_older_file(
    spark: SparkSession, tmp_path: Path
) -> None:
    first = driver(spark, tmp_path / "_lakeingest", "first")
    entry = first.claim(first.head())
    places = [f"00001{lsn:016X}{lsn:016X}" for lsn in (100, 200, 300)]
    for n, place in enumerate(places):
        entry = following(entry, "first")
        entry = replace(entry, frontier=replace(entry.frontier, end_position=place))
        row = (f"{n}:1", n, place, None, 1, [("public.a", 1)])
        first.publish([entry], spark.createDataFrame([row], TRANSACTION))
    path = tmp_path / LEDGER_FOLDER
    ledger = spark.read.format("delta").load(str(path))
    for older in ledger.where("batch < 3").select(F.input_file_name()).distinct().collect():
        (path / older[0].rpartition("/")[2]).unlink()
    again = driver(spark, tmp_path / "_lakeingest", "next")
    assert again.unknown_ends(places[2:]) == 0
    assert again.unknown_ends([places[2][:21]]) == 0
    assert again.head().batch == open_lake(spark, str(tmp_path)).snapshot().batch == 3


def test_claims_alone_publish_nothing(spark: SparkSession, tmp_path: Path) -> None:
    first, second = (driver(spark, tmp_path, run) for run in ("first", "second"))
    assert first.head() == Publication()
    first.claim(first.head())
    taken = second.claim(second.head())
    assert (taken.batch, taken.writer) == (0, 2)
    with pytest.raises(FencedError):
        first.claim(Publication(writer=1))


@DIRECT
def test_a_ledger_that_knew_no_paths_goes_on_and_names_them_from_then_on(
    spark: SparkSession, tmp_path: Path, transactions: DataFrame, direct: bool
) -> None:
    lake, path = tmp_path, str(tmp_path / LEDGER_FOLDER)
    heads = [following(Publication(writer=1), "first")]
    entry = json.loads(heads[0].to_json("shop", PUBLICATION))
    del entry["paths"]
    own, of_source = publication_rows(spark, heads, ""), transaction_rows(heads, transactions, {})
    rows = own.unionByName(of_source).drop("paths")
    rows.write.format("delta").option("userMetadata", json.dumps(entry)).save(path)
    assert open_lake(spark, str(lake)).snapshot().versions == {"a": 1}

    second = driver(spark, lake / "_lakeingest", "second", direct=direct)
    taken = second.claim(second.head())
    assert (taken.batch, dict(taken.paths)) == (1, {})
    second.publish([replace(following(taken, "second"), paths={"a": "elsewhere"})], transactions)
    read = spark.read.format("delta").load(path).where("kind = 'publication'").orderBy("batch")
    assert [row["paths"] for row in read.select("paths").collect()] == [None, {"a": "elsewhere"}]
    shown = open_lake(spark, str(lake))
    snapshots = shown.snapshots()
    assert [snapshot.batch for snapshot in snapshots] == [1, 2]
    # A table that was moved took its older versions along.
    for snapshot in (*snapshots, shown.snapshot(as_of=1), shown.snapshot()):
        assert snapshot._folders.table("a") == str(lake / "elsewhere")
    assert second.head().paths == {"a": "elsewhere"}


def test_vacuum_of_a_table_that_is_the_whole_lake_leaves_the_ledger_alone(
    spark: SparkSession, tmp_path: Path, transactions: DataFrame
) -> None:
    table, ledger = str(tmp_path), driver(spark, tmp_path / "_lakeingest", "first")
    ledger.publish([following(ledger.claim(ledger.head()), "first")], transactions)
    rows = pa.table({"id": [0, 1, 2]})
    for _ in range(2):
        deltalake.write_deltalake(table, rows, mode="overwrite")
    session = own_session(
        spark,
        {
            "spark.databricks.delta.retentionDurationCheck.enabled": "false",
            # Folders are listed by as many tasks; the default, 10,000, takes a minute.
            "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
        },
    )
    DeltaTable.forPath(session, table).vacuum(0)
    assert len(list(tmp_path.glob("*.parquet"))) == 1
    assert ledger.head().batch == 1
    assert open_lake(spark, table).history().count() == 1
