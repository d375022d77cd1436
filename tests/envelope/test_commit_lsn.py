"""Positions of SQL Server and Db2 rows: commit, change, number; what is no LSN has none."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from pyspark.sql import SparkSession

from lakeingest.config.model.source import REFUSED, Connector
from lakeingest.connectors import CONNECTORS
from lakeingest.envelope.change import FAMILIES
from lakeingest.event_columns import BY_SOURCE
from lakeingest.frame_schemas import Kind
from tests.envelope.records import changed, commit_lsn_event, end_position

EARLY, LATE = "00000027:00000ac0:0007", "00000027:00000ac0:000a"


def test_snapshot_then_change_then_number_then_commit(spark: SparkSession) -> None:
    def event(commit: str, change: str | None, serial: int | None, **more: Any) -> dict[str, Any]:
        return commit_lsn_event(commit, change, event_serial_no=serial, **more)

    events = [
        event(LATE, None, None, op="r", snapshot="first"),
        event(EARLY, None, 1),
        event(EARLY, "00000027:00000ac0:0002", 1),
        event(EARLY, "00000027:00000ac0:0002", 9),
        event(EARLY, "00000027:00000ac0:0002", 10),
        event(EARLY, "00000027:00000ac0:000b", 1),
        event(LATE, "00000027:00000ac0:0003", 1),
        event("00000028:00000001:0001", "00000027:00000ac0:0002", 1),
    ]
    rows = changed(spark, "sqlserver", events)
    positions = [row["position"] for row in rows]
    assert positions == sorted(set(positions))
    assert {row["kind"] for row in rows[1:]} == {Kind.ROW}
    assert rows[0]["kind"] == Kind.SNAPSHOT
    assert rows[1]["collection"] == "shop.dbo.a"
    assert rows[1]["transaction_key"] == EARLY


@pytest.mark.parametrize("connector", ["sqlserver", "db2"])
@pytest.mark.parametrize(
    "text", ["27:ac0:7", "00000027:00000ac0:00g7", "NULL", "00000027:00000ac0:00007", "", None]
)
def test_a_streamed_row_whose_commit_is_no_lsn_has_no_position(
    spark: SparkSession, connector: str, text: str | None
) -> None:
    (row,) = changed(spark, connector, [commit_lsn_event(text, EARLY)])
    assert row["position"] is None
    assert row["kind"] == Kind.MALFORMED


@pytest.mark.parametrize("connector", ["sqlserver", "db2"])
def test_a_snapshot_row_needs_no_lsn(spark: SparkSession, connector: str) -> None:
    events = [
        commit_lsn_event(None, None, op="r", snapshot="true"),
        commit_lsn_event("00000000:00000000:0000", None),
    ]
    snapshot, row = changed(spark, connector, events)
    assert snapshot["kind"] == Kind.SNAPSHOT
    assert snapshot["position"] < row["position"]


def test_both_forms_of_db2_sort_together(spark: SparkSession) -> None:
    texts = [
        "00000000:00000000:0000000000000007",
        "00000000:00000000:0008",
        "00000000:00000000:0000000000010000",
        "00000000:00000001:0000",
        "0000000A:00000000:0000000000000000",
        "0000000b:00000000:0000",
    ]
    rows = changed(spark, "db2", [commit_lsn_event(text, text) for text in texts])
    positions = [row["position"] for row in rows]
    assert positions == sorted(set(positions))
    assert len({len(position) for position in positions}) == 1


@pytest.mark.parametrize("connector", ["sqlserver", "db2"])
def test_end_lies_above_its_rows_and_not_above_later_ones(
    spark: SparkSession, connector: str
) -> None:
    top = "ffffffff:ffffffff:fffe"
    events = [commit_lsn_event(EARLY, top, event_serial_no=2**31), commit_lsn_event(LATE, None)]
    own, following = changed(spark, connector, events)
    assert own["position"] < end_position(spark, connector, EARLY) < following["position"]


def test_every_connector_that_can_be_named_has_a_family_and_its_columns() -> None:
    named = set(get_args(get_args(Connector)[0]))
    assert named == set(CONNECTORS)
    assert named <= set(FAMILIES) <= named | set(REFUSED)
    of_streamer = {name: one.streamer_source for name, one in CONNECTORS.items()}
    assert set(of_streamer.values()) == {"", *BY_SOURCE}
    assert {name for name in named if of_streamer[name]} == {
        name for name in named if FAMILIES[name].event is not None
    }
