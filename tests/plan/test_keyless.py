"""Rows of tables without a key: what is one row and what are two, however often they come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructType, TimestampNTZType

from lakeingest.apply.spark_errors import spark_errors_of
from lakeingest.decode.columns import declared_columns
from lakeingest.decode.encodings import Encodings
from lakeingest.decode.json.envelope import decode_envelope
from lakeingest.engine.local_checkpoint import local_checkpoint
from lakeingest.envelope import ChangeSpec, changes
from lakeingest.errors import DataError
from lakeingest.payload.net_zero import NET_ZERO, resolve_net_zero
from lakeingest.plan.keyless import NO_ROW_BEFORE, NOT_AN_INSERT
from lakeingest.plan.spec import Keyless, PipelineSpec, TableSpec
from lakeingest.plan.table import decoded_rows, payload_of_partial_rows
from tests.envelope.records import Record, frame, postgresql_event

SPEC = PipelineSpec("postgresql", Encodings())
SCHEMA = StructType().add("n", LongType()).add("at", TimestampNTZType()).add("t", StringType())
GONE = (None, None, True)
ROW = {"n": 1, "at": 1_700_000_000_000_001, "t": None}


def event(op: str, row: Any, before: Any = None, *, lsn: int = 110, order: int = 1) -> Any:
    whole = postgresql_event(op=op, lsn=lsn, before=100)
    whole["transaction"]["total_order"] = order
    return {**whole, "before": before, "after": row}


def in_transaction(one: Any, xid: int) -> Any:
    return {**one, "transaction": {**one["transaction"], "id": f"{xid}:1"}}


def numbered(number: int) -> dict[str, Any]:
    return {**ROW, "n": number}


def keyless(policy: Keyless) -> TableSpec:
    columns = declared_columns(SCHEMA, SPEC.encodings)
    return TableSpec("public.a", columns, (SPEC.names.row_key,), True, keyless=policy)


def decoded(
    spark: SparkSession,
    events: Sequence[Any],
    policy: Keyless = Keyless.FULL_ROW,
    *,
    lives: Sequence[str] = ("one",),
) -> DataFrame:
    """Decode events that come once in each life of the connector."""
    records = [
        Record("t.public.a", one, None, 0, number, {"__debezium.context.runId": life})
        for number, (life, one) in enumerate((life, one) for life in lives for one in events)
    ]
    found = changes(decode_envelope(frame(spark, records)), ChangeSpec("postgresql"))
    return decoded_rows(local_checkpoint(found), keyless(policy), SPEC)


def payloads(
    spark: SparkSession,
    policy: Keyless,
    events: Sequence[Any],
    *,
    lives: Sequence[str] = ("one",),
    lake: DataFrame | None = None,
) -> list[tuple[Any, ...]]:
    """Fold events that come once in each life of the connector: values, and whether deleted."""
    table = keyless(policy)
    rows = decoded(spark, events, policy, lives=lives)
    told = resolve_net_zero(rows, lake, table.key, SPEC.names)
    payload = payload_of_partial_rows(told, table, SPEC)
    found = payload.select("n", "t", SPEC.names.deleted).collect()
    return sorted((tuple(row) for row in found), key=str)


def test_equal_rows_of_one_copy_are_as_many_rows_however_often_they_are_repeated(
    spark: SparkSession,
) -> None:
    copied = [event("c", ROW, order=number) for number in (1, 2, 3)]
    once = payloads(spark, Keyless.APPEND, copied)
    assert once == [(1, None, False)] * 3
    assert payloads(spark, Keyless.APPEND, copied, lives=("one", "two", "one")) == once


def test_rows_that_differ_by_a_microsecond_are_two_rows(spark: SparkSession) -> None:
    later = {**ROW, "at": 1_700_000_000_000_002}
    for policy in Keyless:
        assert len(payloads(spark, policy, [event("c", ROW), event("c", later)])) == 2


def test_an_update_takes_the_row_away_that_was_brings_the_one_that_is_and_may_change_nothing(
    spark: SparkSession,
) -> None:
    events = [
        event("u", numbered(2), ROW, order=1),
        event("u", numbered(5), numbered(5), lsn=120, order=2),
    ]
    found = payloads(spark, Keyless.FULL_ROW, events)
    assert found == [(2, None, False), (5, None, False), GONE]


def test_a_row_that_is_inserted_changed_back_and_forth_and_deleted_is_gone(
    spark: SparkSession,
) -> None:
    def history(one: Any, two: Any) -> list[Any]:
        return [
            event("c", one, lsn=110),
            event("u", two, one, lsn=120),
            event("u", one, two, lsn=130),
            event("d", None, one, lsn=140),
        ]

    # In one transaction nothing happened to either row, which nobody had; in four, each is gone.
    together = history(ROW, numbered(2))
    apart = [in_transaction(one, xid) for xid, one in enumerate(history(numbered(5), numbered(6)))]
    found = payloads(spark, Keyless.FULL_ROW, [*together, *apart])
    assert [row[2] for row in found] == [True] * 4


@pytest.mark.parametrize("lives", [("one",), ("one", "two", "one")])
def test_rows_that_a_statement_passes_on_to_one_another_stay(
    spark: SparkSession, lives: tuple[str, ...]
) -> None:
    # UPDATE t SET n = n + 1 over 1 and 2: there is a 2 before and after it.
    inserted = in_transaction(event("c", numbered(2), lsn=105), 7)
    events = [
        event("u", numbered(2), numbered(1), lsn=110, order=1),
        event("u", numbered(3), numbered(2), lsn=120, order=2),
    ]
    found = payloads(spark, Keyless.FULL_ROW, [inserted, *events], lives=lives)
    assert found == [(2, None, False), (3, None, False), (None, None, True)]


def test_a_row_that_its_transaction_makes_and_takes_away_is_as_the_lake_has_it(
    spark: SparkSession,
) -> None:
    live, dead = ROW, numbered(5)
    made = [event("c", live, lsn=110, order=1), event("c", dead, lsn=110, order=2)]
    taken = [event("d", None, live, lsn=120, order=3), event("d", None, dead, lsn=120, order=4)]
    rows = decoded(spark, made).select("key_row.*", "row.n").collect()
    names = SPEC.names
    lake = spark.createDataFrame(
        [(row[0], row[1] == dead["n"], "1") for row in rows],
        f"{names.row_key} string, {names.deleted} boolean, {names.position} string",
    )
    found = payloads(spark, Keyless.FULL_ROW, [*made, *taken], lake=lake)
    assert found == [(1, None, False), GONE]


def test_what_a_transaction_left_as_it_was_has_its_last_place(spark: SparkSession) -> None:
    # So that a part of it that comes again finds the row there.
    events = [event("c", ROW, lsn=110, order=1), event("d", None, ROW, lsn=120, order=2)]
    places = {number: decoded(spark, events[:number]).agg(F.max("position")) for number in (1, 2)}
    first, last = (str(places[number].collect()[0][0]) for number in (1, 2))
    (kept,) = decoded(spark, events).select("op", "position").collect()
    assert (kept["op"], kept["position"]) == (NET_ZERO, last)
    assert first < last


def test_a_row_that_its_transaction_makes_once_more_or_last_is_there(spark: SparkSession) -> None:
    more, as_often, last = ROW, numbered(5), numbered(7)
    events = [
        event("c", more, lsn=110, order=1),
        event("c", more, lsn=110, order=2),
        event("d", None, more, lsn=120, order=3),
        event("c", as_often, lsn=110, order=4),
        event("d", None, as_often, lsn=120, order=5),
        event("d", None, last, lsn=110, order=6),
        event("d", None, last, lsn=120, order=7),
        event("c", last, lsn=130, order=8),
    ]
    found = payloads(spark, Keyless.FULL_ROW, events)
    assert found == [(1, None, False), (7, None, False), GONE]


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_placeholder_is_no_part_of_a_row_without_a_key(spark: SparkSession, side: str) -> None:
    # Oracle's LOBs, SQL Server's (max) types.
    sides = {"before": {**ROW, "t": "old"}, "after": {**ROW, "t": "new"}}
    sides[side]["t"] = SPEC.encodings.placeholder
    expected = "Table 'public.a', column 't': a change leaves a value out.*Give the table a primary"
    with pytest.raises(DataError, match=expected), spark_errors_of("public.a"):
        payloads(spark, Keyless.FULL_ROW, [event("u", sides["after"], sides["before"])])


@pytest.mark.parametrize("op", ["u", "d"])
def test_a_change_that_does_not_say_what_the_row_was_fails(spark: SparkSession, op: str) -> None:
    with pytest.raises(Exception, match=NO_ROW_BEFORE):
        payloads(spark, Keyless.FULL_ROW, [event(op, ROW if op == "u" else None)])


@pytest.mark.parametrize("op", ["u", "d"])
def test_a_table_that_is_appended_to_takes_nothing_but_inserts(
    spark: SparkSession, op: str
) -> None:
    with pytest.raises(Exception, match=NOT_AN_INSERT):
        payloads(spark, Keyless.APPEND, [event(op, ROW, ROW)])
