"""Transactions that rows alone show: which there are, in which order, and which are over."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from lakeingest.connectors import CONNECTORS
from lakeingest.decode.encodings import Encodings
from lakeingest.engine.local_checkpoint import local_checkpoint
from lakeingest.envelope.change import FAMILIES
from lakeingest.envelope.headers import RUN_HEADER
from lakeingest.plan.row_boundaries import is_by_rows, row_boundaries, row_evidence
from lakeingest.plan.spec import PipelineSpec, Transactions
from lakeingest.plan.window import window_changes
from lakeingest.position import after
from tests.envelope.records import Record, binlog_event, frame, postgresql_event

POSTGRESQL = PipelineSpec("postgresql", Encodings(), transactions=Transactions.BOUNDARY)
MARIADB = PipelineSpec("mariadb", Encodings(), transactions=Transactions.BOUNDARY)
DELAY = 10


def sent(
    second: int, xid: int | None, before: int | None, lsn: int, run: str = "first", **more: Any
) -> Record:
    """Return a row of PostgreSQL that was written to its partition at a second."""
    table = more.pop("table", "a")
    event = postgresql_event(xid=None, before=before, lsn=lsn, txId=xid, table=table, **more)
    headers = {RUN_HEADER: run} if run else {}
    return Record(f"t.public.{table}", event, {"id": lsn}, 0, second, headers)


def read(
    spark: SparkSession, records: Iterable[Record], spec: PipelineSpec = POSTGRESQL
) -> DataFrame:
    """Return the changes of records whose offsets are the seconds at which they were written."""
    written = frame(spark, records).withColumn("timestamp", F.timestamp_seconds("offset"))
    # As a run does: Spark plans a question about changes longer than it takes to answer it.
    return local_checkpoint(window_changes(written, spec))


def settled_position(spark: SparkSession, *records: Record) -> str | None:
    evidence = row_evidence(read(spark, records), DELAY).first()
    assert evidence is not None
    assert (evidence["unnamed"], evidence["anonymous"]) == (0, 0)
    return None if evidence["settled"] is None else str(evidence["settled"])


THREE = (
    sent(1, 7, None, 90),
    sent(2, 9, 100, 150),
    sent(2, 9, 100, 160, table="b"),
    # Its row lies before those of the commit before it.
    sent(3, 8, 200, 140),
    # It comes again.
    sent(4, 9, 100, 150, "second"),
)


def test_rows_of_one_transaction_are_one_in_the_order_of_commits(spark: SparkSession) -> None:
    rows: list[Row] = row_boundaries(read(spark, THREE), POSTGRESQL).orderBy("end_offset").collect()
    assert [(row["end_offset"], row["id"]) for row in rows] == [
        (0, "7"),
        (101, "9:100"),
        (201, "8:200"),
    ]
    assert [row["end_position"] for row in rows] == [after(0, 1), after(0, 102), after(0, 202)]
    assert [row["event_count"] for row in rows] == [1, 2, 1]
    assert [tuple(each) for each in rows[1]["collections"]] == [("public.a", 1), ("public.b", 1)]
    assert all(is_by_rows(row["end_position"]) for row in rows)
    assert {(row["open"], row["implied"], row["begins"]) for row in rows} == {(False, False, 1)}


def test_a_gtid_names_the_transaction_and_its_server(spark: SparkSession) -> None:
    records = [
        Record("t.shop.a", binlog_event(None, pos=pos, gtid=gtid), {"id": pos}, 0, pos)
        for pos, gtid in ((10, "0-1-9"), (20, "0-1-9"), (30, "0-2-10"))
    ]
    boundaries = row_boundaries(read(spark, records, MARIADB), MARIADB).orderBy("end_offset")
    assert [(row["end_offset"], row["id"], row["domain"]) for row in boundaries.collect()] == [
        (9, "0-1-9", "0"),
        (10, "0-2-10", "0"),
    ]


def test_all_is_there_below_a_row_that_others_of_its_incarnation_follow_after_the_delay(
    spark: SparkSession,
) -> None:
    rows = (sent(1, 7, None, 90), sent(2, 9, 100, 150), sent(3, 8, 200, 240))
    assert settled_position(spark, *rows) is None
    assert settled_position(spark, *rows, sent(11, 11, 300, 350)) == after(0, 0)
    assert settled_position(spark, *rows, sent(12, 11, 300, 350)) == after(0, 101)
    # The transaction of the last row goes on: nothing of a later one is there.
    assert settled_position(spark, *rows, sent(99, 8, 200, 250)) == after(0, 201)


def test_what_a_killed_connector_may_not_have_sent_is_not_taken_for_sent(
    spark: SparkSession,
) -> None:
    rows = (sent(1, 7, None, 90), sent(2, 9, 100, 150), sent(3, 8, 200, 240))
    # The second incarnation sends again what the first one may have lost, and has just begun to.
    again = sent(60, 7, None, 90, "second")
    assert settled_position(spark, *rows, again) is None
    assert settled_position(spark, *rows, again, sent(71, 8, 200, 240, "second")) == after(0, 0)


def test_rows_that_do_not_show_their_transaction_are_counted_and_rows_of_none_are_not(
    spark: SparkSession,
) -> None:
    records = (
        sent(1, None, 100, 150),
        sent(2, None, 100, 151, snapshot="incremental", op="r"),
        sent(3, None, None, 90, snapshot="true", op="r"),
        sent(4, 9, 100, 152),
        sent(5, 9, 100, 153, ""),
    )
    changes = read(spark, records)
    evidence = row_evidence(changes, DELAY).first()
    assert evidence is not None
    assert (evidence["unnamed"], evidence["anonymous"]) == (1, 1)
    assert [row["id"] for row in row_boundaries(changes, POSTGRESQL).collect()] == ["9:100"]


@pytest.mark.parametrize("connector", CONNECTORS)
def test_the_facts_of_a_connector_say_whether_its_rows_show_transactions(connector: str) -> None:
    shows = FAMILIES[connector].row_transaction is not None
    assert CONNECTORS[connector].shows_transactions == shows
