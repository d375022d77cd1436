"""Transactions without a transaction topic: over when the connector has gone on for long enough."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from lakeingest.apply import run
from lakeingest.apply.batch import publish
from lakeingest.apply.guards.order import refuse_another_order
from lakeingest.apply.inspect.validate import validate_pipeline
from lakeingest.apply.window.batch_size import bounds_of
from lakeingest.apply.window.row_ends import read_settled
from lakeingest.apply.window.window import Bounds
from lakeingest.config import load_config
from lakeingest.decode.encodings import Encodings
from lakeingest.errors import ConfigError, DataError
from lakeingest.folders import LEDGER_FOLDER
from lakeingest.ledger.publication import Frontier, Publication
from lakeingest.plan.spec import PipelineSpec, Transactions
from lakeingest.position import after
from tests.apply.crash import crashing_at
from tests.apply.published import history
from tests.config.settings import KAFKA, problem_of
from tests.envelope.records import Record, binlog_event
from tests.logs.written import PREFIX, Sent, WrittenLog, place_of
from tests.plan.test_row_boundaries import MARIADB
from tests.plan.test_row_boundaries import read as changes_of
from tests.plan.test_row_boundaries import sent as row_of
from tests.recordings.check import check_run
from tests.recordings.configure import RecordedRun, packaged_run, recorded_run
from tests.recordings.rust import queried

DATA = Path(__file__).parents[1] / "recordings" / "data"
A, B = "public.a", "public.b"
MODE = "lakeingest.transaction.mode"
BOUNDARY: dict[str, Any] = {"transaction_mode": "boundary"}
TRANSACTIONS = (
    "SELECT transaction_id, events_by_table FROM t WHERE kind = 'transaction' ORDER BY end_offset"
)


def sent(collection: str, id_: int, v: int, xid: int, before: int, lsn: int) -> Sent:
    """Return a row of PostgreSQL without a transaction block."""
    return Sent(collection, id_, v, place_of(collection, lsn, before, txId=xid), "c")


class Log(WrittenLog):
    """A log of a connector that sends no transaction metadata."""

    def write(self, second: int, *rows: Sent) -> None:
        self.seconds = second
        for row in rows:
            self.put(row)

    def clear(self) -> None:
        self._topics.clear()


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Log:
    """Two transactions and a row of a third one, in a log that goes on."""

    def endless(*arguments: Any) -> Any:
        return replace(bounds_of(*arguments), final=False)

    monkeypatch.setattr(run, "bounds_of", endless)
    made = Log(tmp_path / "log", "postgresql", run="first")
    made.write(1, sent(A, 1, 10, 7, 100, 150), sent(B, 1, 10, 7, 100, 160))
    made.write(2, sent(A, 2, 20, 8, 200, 250))
    made.write(12, sent(A, 3, 30, 9, 300, 350))
    return made


@pytest.mark.slow
def test_what_a_later_transaction_has_followed_for_long_enough_is_published_whole(
    spark: SparkSession, log: Log, lake: Path
) -> None:
    # A run dies between the tables' commits and their publication; the next one ends the same.
    with crashing_at("4.before-publication", publish):
        log.ingest(spark, lake, **BOUNDARY)
    log.write(22, sent(B, 3, 30, 9, 300, 360), sent(B, 4, 40, 10, 400, 450))
    log.write(33, sent(A, 5, 50, 11, 500, 550))
    summary = log.ingest(spark, lake, **BOUNDARY)
    assert (summary.transactions, summary.pending_transactions) == (3, 2)
    assert "commit 301, by its rows" in summary.frontier
    # When the first run died, a row of the last one was there alone.
    assert [*history(spark, lake).values()] == [
        {A: {1: 10}, B: {1: 10}},
        {A: {1: 10, 2: 20, 3: 30}, B: {1: 10, 3: 30}},
    ]
    transactions = queried(DeltaTable(f"{lake}/{LEDGER_FOLDER}"), TRANSACTIONS)
    assert transactions["transaction_id"] == ["7:100", "8:200", "9:300"]
    assert dict(transactions["events_by_table"][2]) == {A: 1, B: 1}
    log._topics[f"{PREFIX}.transaction"] = []
    (weaker,) = validate_pipeline(spark, log.configured(lake, **BOUNDARY)).warnings
    assert "counts the rows of each transaction" in weaker
    # What the connector sends again is harmless. A transaction that nobody saw is not.
    log.write(60, sent(B, 3, 30, 9, 300, 360), sent(A, 9, 90, 15, 250, 280))
    with pytest.raises(DataError, match=r"^1 transactions lie below .*boundary\.delay\.seconds"):
        log.ingest(spark, lake, **BOUNDARY)


@pytest.mark.slow
def test_what_cannot_be_told_in_a_log_that_goes_on_stops_the_run(
    spark: SparkSession, log: Log, tmp_path: Path
) -> None:
    log.write(22, sent(A, 4, 40, 10, 400, 450))
    log.raw("public.a", {"id": 4}, None)
    with pytest.raises(DataError, match="a null record, and the delete that belongs before it"):
        log.ingest(spark, tmp_path / "lake", **BOUNDARY)
    # Nobody counts the broken row: the next change of its key may be of another transaction.
    log.clear()
    log.write(1, sent(A, 1, 10, 7, 100, 150))
    log.raw("public.a", {"id": 2}, b"{")
    log.write(40, sent(A, 2, 21, 11, 500, 550), sent(A, 2, 22, 12, 600, 650))
    log.write(60, sent(A, 5, 50, 13, 700, 750))
    with pytest.raises(DataError, match="The record at offset 1 of .* cannot be read"):
        log.ingest(spark, tmp_path / "lake", **BOUNDARY)


def test_a_row_that_does_not_show_its_run_stops_one_over_a_log_that_goes_on(
    spark: SparkSession,
) -> None:
    changes = changes_of(spark, [row_of(1, 7, 100, 150), row_of(2, 9, 200, 250, run="")])
    goes_on = Bounds(batch_events=1, batch_transactions=None, delay_seconds=10)
    assert read_settled(changes, replace(goes_on, final=True)) is None
    with pytest.raises(DataError, match="1 rows do not show which run of the connector sent them"):
        read_settled(changes, goes_on)


def test_a_row_that_does_not_show_its_transaction_stops_a_run(spark: SparkSession) -> None:
    record = Record("t.shop.a", binlog_event(None, gtid=None), {"id": 1}, 0, 1)
    ends = Bounds(batch_events=1, batch_transactions=None, delay_seconds=10, final=True)
    with pytest.raises(DataError, match="1 rows do not show which transaction"):
        read_settled(changes_of(spark, [record], MARIADB), ends)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("connector", "places", "problem"),
    [
        (
            "mysql",
            [{"gtid": "a:1", "pos": 4, "row": 0}, {"gtid": "b:1", "pos": 4, "row": 0}],
            r"of several servers, or have tags \(a, b\)",
        ),
        (
            "postgresql",
            [place_of(A, 5, 4, txId=xid) for xid in (1, 2)],
            "Transactions 1:4 and 2:4 have one place",
        ),
    ],
)
def test_rows_that_do_not_tell_transactions_apart_stop_the_run(
    spark: SparkSession, tmp_path: Path, connector: str, places: list[dict[str, Any]], problem: str
) -> None:
    log = Log(tmp_path / "log", connector)
    for number, place in enumerate(places):
        more = {"db": "shop", "table": "a", "file": "f.000001", **place}
        log.write(1, Sent("public.a" if "schema" in place else "shop.a", number, 1, more, "c"))
    with pytest.raises(DataError, match=problem):
        log.ingest(spark, tmp_path / "lake", **BOUNDARY)


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize(
    ("run", "events"),
    [
        (recorded_run(DATA / "pg-kill-replay"), "600"),
        (recorded_run(DATA / "mariadb-kill"), "3000"),
        (packaged_run(), "3000"),
    ],
    ids=lambda run: getattr(run, "name", run),
)
def test_recorded_events_without_their_transactions_end_as_the_database_commit_by_commit(
    spark: SparkSession, tmp_path: Path, run: RecordedRun, events: str
) -> None:
    settings = {MODE: "boundary", "lakeingest.batch.max.events": events}
    report = check_run(spark, run, tmp_path, settings=settings)
    assert report.history.violations == ()
    assert [said for each in report.tables for said in each.differences] == []
    assert report.history.publications >= 3
    # Nobody noted the commits of ``mariadb-kill``, only the tables at its end.
    assert (report.history.last or 0) == report.history.of


def test_a_lake_is_not_gone_on_with_in_another_mode() -> None:
    by_rows = Publication(
        batch=1,
        token=1,
        writer=1,
        run="r",
        frontier=Frontier(end_offset=3, end_position=after(0, 9), streaming=True),
    )
    by_ends = replace(by_rows, frontier=replace(by_rows.frontier, end_position=after(0, 9, 0)))
    loaded = replace(by_rows, frontier=Frontier(streaming=True))
    spec = PipelineSpec("postgresql", Encodings())
    in_boundaries = replace(spec, transactions=Transactions.BOUNDARY)
    refuse_another_order(by_ends, spec)
    refuse_another_order(by_rows, in_boundaries)
    for each in (spec, in_boundaries):
        refuse_another_order(loaded, each)
    with pytest.raises(ConfigError, match=r"begun with lakeingest\.transaction\.mode=boundary;"):
        refuse_another_order(by_rows, spec)
    with pytest.raises(ConfigError, match=r"begun with lakeingest\.transaction\.mode=metadata;"):
        refuse_another_order(by_ends, in_boundaries)
    by_events = replace(by_rows, frontier=Frontier(end_offset=3, streaming=True))
    in_events = replace(spec, transactions=Transactions.NONE)
    refuse_another_order(by_events, in_events)
    with pytest.raises(ConfigError, match=r"begun with lakeingest\.transaction\.mode=none;"):
        refuse_another_order(by_events, spec)
    with pytest.raises(ConfigError, match=r"begun with lakeingest\.transaction\.mode=metadata;"):
        refuse_another_order(by_ends, in_events)


def test_settings_that_need_begin_and_end_are_refused() -> None:
    settings = {
        **KAFKA,
        MODE: "boundary",
        "lakeingest.source.missing.head": "accept",
        "lakeingest.source.snapshot.again": "replace",
        "lakeingest.commit.mode": "per-transaction",
        "lakeingest.table.public.a.keyless": "append",
    }
    said = problem_of(load_config, settings)
    assert "lakeingest.source.missing.head=accept needs lakeingest.transaction.mode=m" in said
    assert "lakeingest.source.snapshot.again=replace needs lakeingest.transaction.mode=m" in said
    assert "lakeingest.table.public.a.keyless=append needs lakeingest.transaction.mode=m" in said
    assert "lakeingest.commit.mode=per-transaction needs lakeingest.transaction.mode=m" in said
    other = {**KAFKA, MODE: "boundary", "lakeingest.source.connector": "oracle"}
    assert "the rows of a oracle connector do not show" in problem_of(load_config, other)
    mysql = {**KAFKA, MODE: "boundary", "lakeingest.source.connector": "mysql"}
    assert "binlog_transaction_compression=OFF" in load_config(mysql).warnings[0]
