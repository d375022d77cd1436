"""Events that are each on their own: no transaction topic, progress by offsets."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.batch import writer
from lakeingest.apply.batch_stats import BatchStats
from lakeingest.apply.factory import open_ledger
from lakeingest.apply.run import run_pipeline
from lakeingest.apply.summary import RunSummary
from lakeingest.apply.window.offset_ranges import WindowRanges
from lakeingest.apply.window.per_event import _checked_stats
from lakeingest.config import load_config
from lakeingest.decode.encodings import Encodings
from lakeingest.errors import ConfigError, DataError
from lakeingest.ledger.publication import Frontier
from lakeingest.plan.spec import Ordering, PipelineSpec, Transactions
from lakeingest.source.contract import OffsetRange, TopicPartition
from tests.apply.crash import crashing_at
from tests.envelope.records import recorded
from tests.forms import further
from tests.logs.changing import ID, TABLE, Log, column
from tests.recordings.altered import PartOracle, altered
from tests.recordings.check import check_tables
from tests.recordings.configure import RecordedRun, packaged_run, write_properties

pytestmark = pytest.mark.slow

EACH = {"transaction.mode": "none"}
BY_V = {**EACH, "source.ordering.columns": "v"}
COLUMNS = (ID, column("v", "int64"), column("note"))


def row(number: int, v: int | None, note: str = "") -> dict[str, Any]:
    return {"id": number, "v": v, "note": note}


TABLES = ("carts", "documents")


def ingest(spark: SparkSession, run: RecordedRun, folder: Path, events: int) -> RunSummary:
    topics = ",".join(f"{run.prefix}.{run.collection(table)}" for table in TABLES)
    settings = {"transaction_mode": "none", "batch_max_events": str(events)}
    properties = run.configuration(folder / "lake", source_topics=topics, **settings)
    names = [f"lakeingest.table.{run.collection(table)}." for table in TABLES]
    selection = {
        key: value
        for key, value in properties.items()
        if not key.startswith("lakeingest.table.") or key.startswith(tuple(names))
    }
    return run_pipeline(spark, load_config(write_properties(folder / "run.properties", selection)))


def in_one_partition(lines: list[Any]) -> list[Any]:
    """A topic as a connector writes it where nobody asked for several partitions."""
    placed = []
    place: dict[int, tuple[int, ...]] = {}
    for line in lines:
        if line["v"] is not None:  # Else the null record behind a delete.
            event = json.loads(line["v"])
            before, at = json.loads(event["source"]["sequence"])
            total = (event["transaction"] or {}).get("total_order", 0)
            streamed = event["source"]["snapshot"] in ("false", "incremental")
            place[line["p"]] = (streamed, int(before or -1), int(at), int(total))
        placed.append((place[line["p"]], line))
    in_order = sorted(placed, key=lambda one: one[0])
    return [{**line, "p": 0, "o": offset} for offset, (_, line) in enumerate(in_order)]


def test_a_delete_waits_for_its_create_and_a_recorded_run_ends_as_its_source_does_after_a_crash(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Without its transactions. The row of the create goes on with that of the delete."""
    run = packaged_run()
    run = replace(run, oracle=PartOracle(run.oracle.folder, TABLES))
    carts, documents = (
        in_one_partition(list(recorded(run.events, f"t1.public.{table}"))) for table in TABLES
    )
    ops = [json.loads(line["v"])["op"] if line["v"] else None for line in documents]
    moved = [at for at, line in enumerate(documents) if "__debezium.newkey" in str(line["h"])]
    (cut, *_) = [at for at in moved if "unavailable" in documents[at + 2]["v"]]
    assert ops[cut : cut + 3] == ["d", None, "c"]

    def written(name: str, carts: list[Any], documents: list[Any]) -> RecordedRun:
        part = altered(run, tmp_path / name, carts=lambda _: carts, documents=lambda _: documents)
        (topic,) = (tmp_path / name / "topics").glob("*.transaction.jsonl.gz")
        topic.unlink()
        return part

    half = written("half", carts[:100], documents[: cut + 2])
    assert ingest(spark, half, tmp_path, 1_000).pending_transactions == 1
    whole = written("whole", carts, documents)
    with crashing_at("3.after-first-commit", writer):
        ingest(spark, whole, tmp_path, 230)
    # Batches of another size hold no batch that the crash cut short.
    ended = ingest(spark, whole, tmp_path, 150)
    assert (ended.transactions, ended.pending_transactions, ended.batches > 1) == (0, 0, True)
    comparisons = check_tables(whole, tmp_path / "run.properties")
    assert {one.table: one.differences for one in comparisons} == dict.fromkeys(TABLES, ())
    # Nothing is left to be read.
    ledger = open_ledger(spark, load_config(tmp_path / "run.properties"), "")
    assert ledger.head().frontier.offsets == {
        "t1.public.carts": {0: len(carts)},
        "t1.public.documents": {0: len(documents)},
    }


@pytest.mark.parametrize("form", ["json", *(further(form) for form in ("json-schema", "avro"))])
def test_a_table_may_have_its_own_order_and_a_delete_without_its_column_stops_until_it_is_skipped(
    spark: SparkSession, tmp_path: Path, form: str
) -> None:
    log, own = Log(tmp_path, form), {**EACH, f"table.{TABLE}.ordering.columns": "v,source.ts_ms"}
    log.commit(COLUMNS, *(("c", row(number, 10, "a")) for number in (1, 2, 3)))
    log.commit(COLUMNS, ("u", row(2, 11, "b")), ("u", row(2, 9, "old")))
    log.commit(COLUMNS, ("d", row(3, 12)), ("u", row(3, 11, "late")))
    log.commit(COLUMNS, ("d", row(1, None)), ("u", row(2, 12, "c")))
    message = "The record at offset 7 of .*ordering column, which a delete has with REPLICA"
    with pytest.raises(DataError, match=message):
        log.run(spark, own)
    assert log.rows("note") == {1: ("a",), 2: ("b",)}
    log.run(spark, {**own, "source.skip.records": "t.public.items:0:7"})
    assert log.rows("note") == {1: ("a",), 2: ("c",)}


def test_guessed_types_are_told_and_a_lake_goes_on_with_no_other_columns_and_past_no_snapshot(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = Log(tmp_path / "each")
    log.commit(COLUMNS, ("c", row(1, 10, "new")), ("u", row(1, 9, "old")))
    assert any("types taken from the JSON" in warning for warning in log.run(spark, BY_V).warnings)
    assert log.rows("note") == {1: ("new",)}
    with pytest.raises(ConfigError, match="begun with the ordering columns 'v'"):
        log.run(spark, {**EACH, "source.ordering.columns": "source.ts_ms"})
    log.commit(COLUMNS, ("r", row(1, 10)))
    lines = log._rows
    event = json.loads(lines[-1]["v"])
    event["source"]["snapshot"] = "last"
    lines[-1]["v"] = json.dumps(event)
    # The columns of a table that is not there yet are nobody's order.
    with pytest.raises(DataError, match="a new initial snapshot"):
        log.run(spark, {**BY_V, "table.public.other.ordering.columns": "w"})


def test_a_changed_key_that_leaves_values_out_needs_one_partition_and_no_ordering_columns() -> None:
    topic = "t.public.items"
    moved = [BatchStats(1, TopicPartition(topic, 0), TABLE, 1, 0, "", "", "", masked=1, moved=1)]
    of_one_partition = WindowRanges(None, (), frozenset()), Frontier(offsets={topic: {0: 3}})
    further_one = WindowRanges(None, (OffsetRange(topic, 1, 0, 3),), frozenset())
    by_log = PipelineSpec("postgresql", Encodings(), transactions=Transactions.NONE)
    assert _checked_stats(moved, *of_one_partition, by_log) == moved
    with pytest.raises(DataError, match="'public.items' leaves values out, and its topic has sev"):
        _checked_stats(moved, further_one, of_one_partition[1], by_log)
    by_columns = replace(by_log, ordering=Ordering(("source.ts_ms",)))
    with pytest.raises(DataError, match="leaves values out, and it has ordering columns"):
        _checked_stats(moved, *of_one_partition, by_columns)
