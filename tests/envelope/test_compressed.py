"""Positions of MySQL's rows where the binlog tells no order within a transaction."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from lakeingest.decode.json.envelope import decode_envelope
from lakeingest.envelope import ChangeSpec, changes
from lakeingest.envelope.change import FAMILIES
from lakeingest.event_columns import EVENT
from lakeingest.frame_schemas import INSIDE
from tests.envelope.records import Record, binlog_event, frame

GTID = "0e4d5dcd-a33b-11ea-80f1-02010a22a99e:7"


def event(
    nth: int, row: int, *, op: str = "u", pos: int = 235, version: Any = "3.7.0.Final"
) -> Any:
    made = binlog_event(GTID, pos=pos, row=row, op=op, gtid=GTID, version=version)
    return {**made, "transaction": {"id": GTID, "total_order": nth}}


def placed(spark: SparkSession, *records: Record, event: bool = False) -> list[Row]:
    numbered = [
        Record(one.topic, one.value, one.key, 0, offset, one.headers)
        for offset, one in enumerate(records)
    ]
    source = FAMILIES["mysql"].source
    envelopes = decode_envelope(frame(spark, numbered), event=event, source=source)
    return changes(envelopes, ChangeSpec("mysql", event=event)).orderBy("offset").collect()


def sent(value: Any, id_: int = 1, **headers: Any) -> Record:
    return Record("t", value, {"id": id_}, headers=headers)


STATEMENTS = [(1, 0), (2, 1), (3, 5), (4, 0), (5, 0), (6, 1)]
"""``total_order`` and ``row`` of four statements in one compressed transaction."""


def test_statements_of_a_compressed_transaction_are_in_the_order_in_which_debezium_counted(
    spark: SparkSession,
) -> None:
    rows = placed(spark, *(sent(event(nth, row)) for nth, row in STATEMENTS))
    positions = [row["position"] for row in rows]
    assert positions == sorted(set(positions))
    assert len({row["identity"] for row in rows}) == len(rows)


def test_what_comes_again_has_the_place_and_the_identity_that_it_had(spark: SparkSession) -> None:
    one, again = placed(spark, *(sent(event(3, 5)) for _ in range(2)))
    assert (one["position"], one["identity"]) == (again["position"], again["identity"])


def test_a_key_change_has_one_place_and_the_next_row_a_later_one(spark: SparkSession) -> None:
    delete, create, other = placed(
        spark,
        sent(event(2, 0, op="d"), 1),
        sent(event(3, 0, op="c"), 2, **{"__debezium.oldkey": {"id": 1}}),
        sent(event(4, 1, op="c"), 2),
    )
    assert delete["position"] == create["position"] < other["position"]
    assert delete["identity"] != create["identity"]


@pytest.mark.parametrize("version", ["3.7.0.Alpha1", "3.7.0.Final", "3.10.1.Final", "4.0.0.Final"])
def test_a_connector_that_goes_on_counting_is_believed(spark: SparkSession, version: str) -> None:
    first, second = placed(spark, *(sent(event(n, 5 - n, version=version)) for n in (1, 2)))
    assert first["position"] < second["position"]
    assert first[INSIDE] is None


@pytest.mark.parametrize(
    "version", ["1.9.7.Final", "2.7.4.Final", "3.0.0.Final", "3.6.0", "", None]
)
def test_a_connector_that_counts_again_is_not(spark: SparkSession, version: str | None) -> None:
    """After a restart in mid-transaction its next rows are the first ones again."""
    late, early, again = placed(
        spark,
        sent(event(1, 3, pos=300, version=version)),
        sent(event(9, 2, pos=300, version=version)),
        sent(event(4, 3, pos=300, version=version)),
    )
    assert early["position"] < late["position"] == again["position"]
    assert late["identity"] == again["identity"]
    assert (again[INSIDE]["row"], again[INSIDE]["nth"]) == (3, 4)


def test_positions_of_both_kinds_of_connector_do_not_meet_in_one_place(spark: SparkSession) -> None:
    before, after, of_later_place = placed(
        spark,
        sent(event(1, 1, version="3.6.0.Final")),
        sent(event(1, 0)),
        sent(event(1, 0, pos=236, version="3.6.0.Final")),
    )
    assert before["position"] < after["position"] < of_later_place["position"]


def test_a_row_outside_of_transactions_keeps_the_order_of_the_binlog(spark: SparkSession) -> None:
    outside = {**event(0, 4), "transaction": None}
    counted, alone = placed(spark, sent(event(1, 4, pos=234)), sent(outside))
    assert counted["position"] < alone["position"]
    assert alone[INSIDE]["row"] == 4


def test_hudis_columns_and_the_version_are_read_together(spark: SparkSession) -> None:
    (row,) = placed(spark, sent(event(1, 4)), event=True)
    assert row[EVENT]["_event_row"] == 4
    assert row[INSIDE] is None
