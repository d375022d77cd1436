"""Who writes, and how far the lake is, whatever drivers did to one another."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from lakeingest.engine.delta_log import commits
from lakeingest.engine.own_session import own_session
from lakeingest.errors import FencedError
from lakeingest.ledger.delta import DeltaLedger
from lakeingest.ledger.publication import Frontier, Publication
from lakeingest.reader import open_lake
from lakeingest.shape import LEDGER_FOLDER

TRANSACTION = (
    "id string, end_offset bigint, end_position string, committed_at timestamp, event_count bigint,"
    " collections array<struct<data_collection: string, event_count: bigint>>"
)


@pytest.fixture
def transactions(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([("7:100", 3, "0001", None, 1, [("public.a", 1)])], TRANSACTION)


def driver(spark: SparkSession, folder: Path, run: str, *, direct: bool = True) -> DeltaLedger:
    return DeltaLedger(spark, str(folder / "ledger"), "shop", run, direct=direct)


def following(head: Publication, run: str) -> Publication:
    """Return the batch after ``head``, as its driver publishes it."""
    batch = head.batch + 1
    token = head.writer * 1_000_000_000 + batch
    frontier = Frontier(end_offset=batch, end_position=f"{batch:04}")
    return replace(head, batch=batch, token=token, run=run, tables={"a": batch}, frontier=frontier)


@pytest.mark.parametrize("direct", [True, False])
def test_a_claim_brings_what_another_driver_published_since_the_head_was_read(
    spark: SparkSession, tmp_path: Path, transactions: DataFrame, direct: bool
) -> None:
    first, second = (driver(spark, tmp_path, run, direct=direct) for run in ("first", "second"))
    held = first.claim(first.head())
    read_too_early = second.head()
    for _ in range(2):
        held = following(held, "first")
        first.publish(held, transactions)
    taken = second.claim(read_too_early)
    assert (taken.batch, taken.run, taken.writer) == (2, "second", held.writer + 1)
    assert (taken.tables, taken.frontier) == (held.tables, held.frontier)
    with pytest.raises(FencedError):
        first.publish(following(held, "first"), transactions)


def test_a_claim_that_knew_too_little_takes_no_publication_back(
    spark: SparkSession, tmp_path: Path, transactions: DataFrame
) -> None:
    first = driver(spark, tmp_path, "first")
    held = following(first.claim(first.head()), "first")
    read_too_early = first.head()
    first.publish(held, transactions)
    # Killed right after its claim, which repeats what it had read.
    driver(spark, tmp_path, "second").claim(read_too_early)
    head = driver(spark, tmp_path, "third").head()
    assert (head.batch, head.tables, head.frontier) == (1, held.tables, held.frontier)
    assert (head.run, head.writer) == ("second", held.writer + 1)


def test_claims_alone_publish_nothing(spark: SparkSession, tmp_path: Path) -> None:
    first, second = (driver(spark, tmp_path, run) for run in ("first", "second"))
    assert first.head() == Publication()
    first.claim(first.head())
    taken = second.claim(second.head())
    assert (taken.batch, taken.writer) == (0, 2)
    with pytest.raises(FencedError):
        first.claim(Publication(writer=1))


@pytest.mark.parametrize("direct", [True, False])
def test_a_ledger_that_knew_no_paths_goes_on_and_names_them_from_then_on(
    spark: SparkSession, tmp_path: Path, transactions: DataFrame, direct: bool
) -> None:
    new, old = tmp_path / "new" / LEDGER_FOLDER, tmp_path / "old" / LEDGER_FOLDER
    first = driver(spark, new.parent, "first", direct=direct)
    first.publish(following(first.claim(first.head()), "first"), transactions)
    known = next(commits(spark, str(new)))
    entry = json.loads(known.metadata or "")
    del entry["paths"]
    rows = spark.read.format("delta").load(str(new)).drop("paths")
    rows.write.format("delta").option("userMetadata", json.dumps(entry)).save(str(old))
    assert open_lake(spark, str(tmp_path / "old")).snapshot().versions == {"a": 1}

    second = driver(spark, old.parent, "second", direct=direct)
    taken = second.claim(second.head())
    assert (taken.batch, dict(taken.paths)) == (1, {})
    second.publish(replace(following(taken, "second"), paths={"a": "elsewhere"}), transactions)
    read = spark.read.format("delta").load(str(old)).where("kind = 'publication'").orderBy("batch")
    assert [row["paths"] for row in read.select("paths").collect()] == [None, {"a": "elsewhere"}]
    lake = open_lake(spark, str(tmp_path / "old"))
    assert [snapshot.batch for snapshot in lake.snapshots()] == [1, 2]
    # A table that was moved took its older versions along.
    for snapshot in (*lake.snapshots(), lake.snapshot(as_of=1), lake.snapshot()):
        assert snapshot._folders.table("a") == str(tmp_path / "old" / "elsewhere")
    assert second.head().paths == {"a": "elsewhere"}


def test_vacuum_of_a_table_that_is_the_whole_lake_leaves_the_ledger_alone(
    spark: SparkSession, tmp_path: Path, transactions: DataFrame
) -> None:
    table, ledger = str(tmp_path), driver(spark, tmp_path / "_lakeingest", "first")
    ledger.publish(following(ledger.claim(ledger.head()), "first"), transactions)
    for _ in range(2):
        spark.range(3).coalesce(1).write.format("delta").mode("overwrite").save(table)
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
