"""What a record is, from real Debezium events (3.4.1, PostgreSQL 15) and from broken ones."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from lakeingest.decode.encodings import Encodings
from lakeingest.decode.json.envelope import decode_envelope
from lakeingest.decode.json.format import JsonFormat
from lakeingest.envelope import ChangeSpec, changes
from lakeingest.frame_schemas import Kind
from lakeingest.position import COMPONENT_WIDTH
from tests.envelope.records import Record, binlog_event, frame, postgresql_event, vectors

MARKS = JsonFormat().marks(Encodings())


def changed(spark: SparkSession, records: list[Record], connector: str = "postgresql") -> list[Row]:
    spec = ChangeSpec(connector, marks=MARKS, is_foreign=JsonFormat().is_foreign(F.col("value")))
    return changes(decode_envelope(frame(spark, records)), spec).orderBy("offset").collect()


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> list[Row]:
    return changed(spark, vectors("postgresql"))


@pytest.fixture(scope="module")
def more_rows(spark: SparkSession) -> list[Row]:
    return changed(spark, vectors("signal_keyless_heartbeat"))


def test_every_record_gets_exactly_one_kind(rows: list[Row], more_rows: list[Row]) -> None:
    assert len(rows) == 52
    # Of the 52: three snapshot rows, 18 changes, two truncates, two null records, three messages;
    # the other 24 are BEGIN and END, which on a data topic are foreign.
    assert Counter(row["kind"] for row in rows) == {
        Kind.SNAPSHOT: 3,
        Kind.ROW: 18,
        Kind.TRUNCATE: 2,
        Kind.NULL_RECORD: 2,
        Kind.MESSAGE: 3,
        Kind.FOREIGN: 24,
    }
    more = Counter(row["kind"] for row in more_rows)
    assert more == {Kind.FOREIGN: 1, Kind.ROW: 10, Kind.NULL_RECORD: 1}


def test_each_operation_of_the_wire_has_its_kind(rows: list[Row], more_rows: list[Row]) -> None:
    assert {(row["op"], row["kind"]) for row in rows + more_rows if row["op"]} == {
        ("r", Kind.SNAPSHOT),
        *((op, Kind.ROW) for op in "rcud"),
        ("t", Kind.TRUNCATE),
        ("m", Kind.MESSAGE),
    }


def test_a_null_record_has_neither_position_nor_transaction(rows: list[Row]) -> None:
    nulls = [row for row in rows if row["kind"] == Kind.NULL_RECORD]
    assert [json.loads(row["key"]) for row in nulls] == [{"id": 1}, {"id": 3}]
    assert all(row["position"] is None and row["transaction_key"] is None for row in nulls)


def test_the_transaction_is_named_by_what_its_rows_share(rows: list[Row]) -> None:
    ids = {row["transaction_key"] for row in rows if row["collection"] == "public.b"}
    assert ids == {None, "738"}


def test_a_key_change_names_the_old_key_on_its_create_only(rows: list[Row]) -> None:
    old_keys = {row["op"]: row["moved_from"] for row in rows if row["transaction_key"] == "739"}
    assert old_keys["d"] is None
    assert json.loads(old_keys["c"]) == {"id": 3}
    assert [row["offset"] for row in rows if row["moved_from"]] == [16]


def test_both_halves_of_a_key_change_and_rows_of_one_copy_are_different_rows(
    rows: list[Row],
) -> None:
    for transaction, count in (("739", 2), ("745", 3), ("744", 2)):
        mine = [row for row in rows if row["transaction_key"] == transaction]
        assert len({row["position"] for row in mine}) == 1
        assert len({row["identity"] for row in mine}) == len(mine) == count


def test_the_position_grows_along_the_log_though_the_lsn_goes_back(rows: list[Row]) -> None:
    streamed = [row for row in rows if row["kind"] in (Kind.ROW, Kind.TRUNCATE)]
    positions = [row["position"] for row in streamed]
    assert positions == sorted(positions)
    lsns = [int(position[-COMPONENT_WIDTH:], 16) for position in positions]
    assert lsns != sorted(lsns)


def test_initial_snapshot_rows_lie_below_every_streamed_change(rows: list[Row]) -> None:
    highest = max(row["position"] for row in rows if row["kind"] == Kind.SNAPSHOT)
    assert highest < min(row["position"] for row in rows if row["kind"] == Kind.ROW)


def test_incremental_snapshot_rows_compete_by_sequence_and_have_no_transaction(
    more_rows: list[Row],
) -> None:
    by_offset = {row["offset"]: row for row in more_rows}
    signal, first, second, later_signal = (by_offset[n] for n in (6, 7, 8, 9))
    assert first["op"] == second["op"] == "r"
    assert first["kind"] == second["kind"] == Kind.ROW
    assert first["transaction_key"] is None
    assert first["snapshot"] == "incremental"
    before = by_offset[5]["position"]
    # Read above the commit before, and below every row of the transaction that closed the chunk.
    assert before < signal["position"] < first["position"] == second["position"]
    assert first["position"] < later_signal["position"]
    # An update after the chunk wins over it.
    assert by_offset[10]["position"] < by_offset[11]["position"]


def test_a_heartbeat_is_foreign(more_rows: list[Row]) -> None:
    heartbeat = more_rows[0]
    assert (heartbeat["kind"], heartbeat["topic"]) == (Kind.FOREIGN, "__debezium-heartbeat.px")


def in_life(run: str, order: int, key: Any) -> Record:
    """Return a row that an incarnation of the connector sent as the nth one of its transaction."""
    return Record("t", postgresql_event(nth=order), key, headers={"__debezium.context.runId": run})


def test_keyless_rows_are_told_apart_by_order_within_one_incarnation(spark: SparkSession) -> None:
    sent = (("r1", 1), ("r1", 2), ("r1", 1), ("r2", 1))
    records = [in_life(run, order, None) for run, order in sent]
    first, second, again, other_run = (row["identity"] for row in changed(spark, records))
    assert len({first, second, other_run}) == 3
    assert again == first


def test_a_redelivered_row_has_the_same_identity_whatever_its_order_and_incarnation(
    spark: SparkSession,
) -> None:
    sent = (("a", 9, 1), ("b", 1, 1), ("a", 9, 2))
    records = [in_life(run, order, {"id": key}) for run, order, key in sent]
    first, again, other = (row["identity"] for row in changed(spark, records))
    assert first == again != other


EVENT = postgresql_event()

ODD: dict[str, tuple[Any, str]] = {
    "truncated JSON": (json.dumps(EVENT)[:-3], Kind.MALFORMED),
    "no source": (EVENT | {"source": None}, Kind.MALFORMED),
    "no position": (postgresql_event(lsn=None), Kind.MALFORMED),
    "no table": (postgresql_event(table=None, schema=None), Kind.MALFORMED),
    "an unknown operation": (EVENT | {"op": "x"}, Kind.UNKNOWN),
    "a row without its envelope": ({"id": 1, "status": "END"}, Kind.UNKNOWN),
    "no field at all": ({}, Kind.UNKNOWN),
    "a heartbeat": ({"ts_ms": 1}, Kind.FOREIGN),
    "transaction metadata": (
        {"status": "BEGIN", "id": "7:1", "event_count": None, "data_collections": None, "ts_ms": 1},
        Kind.FOREIGN,
    ),
    "a notification": (
        {"id": "a", "aggregate_type": "x", "type": "y", "additional_data": {}, "timestamp": 1},
        Kind.FOREIGN,
    ),
    "a schema change": (
        {"source": {"db": "shop", "table": "a"}, "ts_ms": 1, "databaseName": "shop", "ddl": "…"},
        Kind.FOREIGN,
    ),
    "snapshot true": (postgresql_event(op="r", snapshot="true"), Kind.SNAPSHOT),
    "snapshot as boolean": (postgresql_event(op="r", snapshot=True), Kind.SNAPSHOT),
    "snapshot false": (postgresql_event(snapshot="false"), Kind.ROW),
    "snapshot null": (postgresql_event(snapshot=None), Kind.ROW),
    "a create while a snapshot runs": (postgresql_event(op="c", snapshot="true"), Kind.ROW),
    "a truncate": (postgresql_event(op="t"), Kind.TRUNCATE),
    "null": (None, Kind.NULL_RECORD),
}


def test_odd_records_get_the_kind_that_keeps_them_countable(spark: SparkSession) -> None:
    records = [Record("t", value, {"id": 1}, 0, n) for n, (value, _) in enumerate(ODD.values())]
    kinds = [row["kind"] for row in changed(spark, records)]
    assert dict(zip(ODD, kinds, strict=True)) == {name: kind for name, (_, kind) in ODD.items()}


def test_only_creates_and_updates_with_a_mark_may_be_masked(spark: SparkSession) -> None:
    text = {"id": 1, "t": "__debezium_unavailable_value"}
    octets = {"id": 1, "ia": list(b"__debezium_unavailable_value")}
    values = [
        (postgresql_event(op="u") | {"after": text}, True),
        (postgresql_event(op="c") | {"after": text}, True),
        (postgresql_event(op="u") | {"after": octets}, True),
        (postgresql_event(op="u"), False),
        (postgresql_event(op="d") | {"before": text, "after": None}, False),
        (postgresql_event(op="r") | {"after": text}, False),
    ]
    records = [Record("t", value, {"id": 1}, 0, n) for n, (value, _) in enumerate(values)]
    assert [row["may_be_masked"] for row in changed(spark, records)] == [mark for _, mark in values]


def test_a_binlog_row_is_named_by_database_and_table(spark: SparkSession) -> None:
    (row,) = changed(spark, [Record("t", binlog_event("0-1-7"), {"id": 1})], "mariadb")
    assert (row["collection"], row["transaction_key"]) == ("shop.a", "0-1-7")


def test_a_row_whose_source_block_lacks_the_table_is_no_row_of_another_table(
    spark: SparkSession,
) -> None:
    (row,) = changed(spark, [Record("t", postgresql_event(table=None), {"id": 1})])
    assert (row["kind"], row["collection"]) == (Kind.MALFORMED, "")
