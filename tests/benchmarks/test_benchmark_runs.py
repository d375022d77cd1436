"""The benchmark in small: not how fast anything is, but that what it compares is comparable."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakeingest.source.contract import OffsetRange
from tests.benchmarks.contestant import Stream, cut
from tests.benchmarks.effort import Effort
from tests.benchmarks.floor import Floor
from tests.benchmarks.generate import generate
from tests.benchmarks.ingest import (
    Round,
    WrongTablesError,
    benchmark,
    contestants,
    report,
    run_round,
)
from tests.benchmarks.source import ParquetSource
from tests.benchmarks.target import Target, targets
from tests.benchmarks.truth import expected
from tests.benchmarks.workload import (
    ACCOUNTS,
    HISTORY,
    TABLES,
    TRANSACTION_TOPIC,
    EventFolder,
    Shape,
)

pytestmark = [pytest.mark.slow, pytest.mark.soak]

SMALL = Shape(transactions=120, accounts=40, tellers=6, branches=2)
BATCH = 320

RECORDED_UPDATE = (
    '{"before":null,"after":{"aid":2552,"bid":1,"abalance":-2138,"filler":"' + " " * 84 + '"},'
    '"source":{"version":"3.7.0.Final","connector":"postgresql","name":"bench",'
    '"ts_ms":1795262689918,"snapshot":null,"db":"bench",'
    '"sequence":"[\\"201084360\\",\\"201084512\\"]","ts_us":1795262689918517,'
    '"ts_ns":1795262689918517000,"schema":"public","table":"pgbench_accounts","txId":45751,'
    '"lsn":201084512,"xmin":null,"origin":null,"origin_lsn":null},'
    '"transaction":{"id":"45751:201084512","total_order":2,"data_collection_order":1},'
    '"op":"u","ts_ms":1795262690451,"ts_us":1795262690451136,"ts_ns":1795262690451136208}'
)


@pytest.fixture(scope="module")
def log(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> EventFolder:
    """A small generated log."""
    folder = EventFolder(tmp_path_factory.mktemp("log"))
    generate(spark, folder, SMALL)
    return folder


def all_records(spark: SparkSession, folder: EventFolder, topic: str) -> DataFrame:
    """Every record of ``topic``, key and value as text."""
    source = ParquetSource(spark, folder)
    return source.read(
        [
            OffsetRange(part.topic, part.partition, 0, bounds.high)
            for part, bounds in source.watermarks([topic]).items()
        ]
    ).withColumns({name: F.col(name).cast("string") for name in ("key", "value")})


@pytest.mark.parametrize("into", Target)
def test_every_contestant_ends_with_the_tables_of_the_source(
    spark: SparkSession, log: EventFolder, tmp_path: Path, into: Target
) -> None:
    stream = cut(spark, log, SMALL.transactions, BATCH)
    truth = expected(spark, log, SMALL, SMALL.transactions)
    done = run_round(contestants(into), stream, truth, tmp_path)  # raises where a table differs
    assert list(done.efforts) == ["ours", "recipe", "recipe, tuned", "floor"]


def test_the_warm_up_is_not_counted(spark: SparkSession, log: EventFolder, tmp_path: Path) -> None:
    stream = cut(spark, log, SMALL.transactions, BATCH)
    truth = expected(spark, log, SMALL, SMALL.transactions)
    rounds = benchmark([Floor()], stream, truth, tmp_path, runs=1)
    assert [list(one.efforts) for one in rounds] == [["floor"]]


def test_formats_are_named_with_commas_and_each_is_run_once() -> None:
    assert targets("hudi-mor, delta,hudi-mor") == (Target.HUDI_MOR, Target.DELTA)
    with pytest.raises(ValueError, match="parquet"):
        targets("delta,parquet")


@dataclass(frozen=True)
class Forgetful(Floor):
    """Never reads the last batch."""

    name: str = "forgetful"

    def run(self, stream: Stream, target: Path) -> None:
        super().run(replace(stream, batches=stream.batches[:-1]), target)


def test_a_contestant_that_loses_events_ends_the_benchmark(
    spark: SparkSession, log: EventFolder, tmp_path: Path
) -> None:
    stream = cut(spark, log, SMALL.transactions, BATCH)
    truth = expected(spark, log, SMALL, SMALL.transactions)
    with pytest.raises(WrongTablesError, match="forgetful: pgbench"):
        run_round([Forgetful()], stream, truth, tmp_path)


def test_a_generated_record_has_the_bytes_of_a_recorded_one(
    spark: SparkSession, log: EventFolder
) -> None:
    row = (
        all_records(spark, log, ACCOUNTS.topic)
        .orderBy(F.col("timestamp").desc(), F.col("offset").desc())
        .first()
    )
    assert row is not None

    def without_numbers(text: str) -> str:
        return re.sub(r"-?\d+", "0", re.sub(r'"total_order":\d', '"total_order":0', text))

    assert without_numbers(row["value"]) == without_numbers(RECORDED_UPDATE)
    assert re.fullmatch(r'\{"aid":\d+\}', row["key"])
    assert [header["key"].rsplit(".")[-1] for header in row["headers"]] == [
        "connectorLogicalName",
        "taskId",
        "connectorName",
        "runId",
    ]


def test_offsets_are_dense_in_every_partition(spark: SparkSession, log: EventFolder) -> None:
    for topic in (TRANSACTION_TOPIC, *(table.topic for table in TABLES)):
        for row in (
            all_records(spark, log, topic)
            .groupBy("partition")
            .agg(F.count_distinct("offset").alias("count"), F.max("offset").alias("last"))
            .collect()
        ):
            assert row["count"] == row["last"] + 1


def test_positions_go_back_between_transactions_but_never_for_one_key(
    spark: SparkSession, log: EventFolder
) -> None:
    lsn = F.get_json_object("value", "$.source.lsn").cast("long")
    rows = (
        all_records(spark, log, ACCOUNTS.topic)
        .where(F.get_json_object("value", "$.op") == "u")
        .select("partition", "offset", "key", lsn.alias("lsn"))
        .orderBy("partition", "offset")
        .collect()
    )
    by_key: dict[str, list[int]] = {}
    for row in rows:
        by_key.setdefault(row["key"], []).append(row["lsn"])
    assert all(seen == sorted(seen) for seen in by_key.values())
    assert any(
        earlier["partition"] == later["partition"] and earlier["lsn"] > later["lsn"]
        for earlier, later in zip(rows, rows[1:], strict=False)
    )
    assert len({row["lsn"] for row in rows}) == SMALL.transactions


def test_batches_cut_the_log_between_transactions_without_gap_or_overlap(
    spark: SparkSession, log: EventFolder
) -> None:
    stream = cut(spark, log, SMALL.transactions, BATCH)
    read = [
        {row["topic"]: row["count"] for row in rows.groupBy("topic").count().collect()}
        for rows in map(stream.source.read, stream.batches)
    ]
    assert read == [dict.fromkeys((table.topic for table in TABLES), size) for size in (80, 40)]


def test_a_source_cut_after_the_snapshot_shows_nothing_of_the_stream(
    spark: SparkSession, log: EventFolder
) -> None:
    source = ParquetSource(spark, log, until=0)
    high = source.watermarks([HISTORY.topic, TRANSACTION_TOPIC, ACCOUNTS.topic])
    shown = dict.fromkeys((HISTORY.topic, TRANSACTION_TOPIC, ACCOUNTS.topic), 0)
    for part, bounds in high.items():
        shown[part.topic] += bounds.high
    assert shown == {HISTORY.topic: 0, TRANSACTION_TOPIC: 0, ACCOUNTS.topic: SMALL.accounts}


def test_the_report_takes_the_ratio_inside_each_round_before_the_median() -> None:
    seconds = ((1.0, 2.0), (4.0, 4.0), (2.0, 6.0))
    rounds = [
        Round({"ours": Effort(ours, 0.0), "other": Effort(other, 0.0)}) for ours, other in seconds
    ]
    (line,) = [text for text in report(rounds, 100, "ours").splitlines() if "other" in text]
    assert "2.00x" in line
