"""Places of YugabyteDB's rows: LSNs of both types of slots, and the gRPC connector's times.

The events have the fields of ``YugabyteDBSourceInfoStructMaker`` and ``SourceInfoTest``.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakeingest.frame_schemas import Kind
from lakeingest.position import after
from tests.envelope.records import changed, end_position, grpc_event, postgresql_event

HYBRID = 1_763_874_000_000_000 << 12


def ordered(event: dict[str, Any], total_order: int) -> dict[str, Any]:
    return {**event, "transaction": {**event["transaction"], "total_order": total_order}}


def test_a_slot_in_sequence_has_postgresqls_places(spark: SparkSession) -> None:
    events = [ordered(postgresql_event(before=before, lsn=5), 9) for before in (None, 4)]
    mine, postgresqls = (changed(spark, name, events) for name in ("yugabytedb", "postgresql"))
    assert [row["position"] for row in mine] == [row["position"] for row in postgresqls]


def test_two_changes_of_a_row_at_one_hybrid_time_are_two_and_in_order(spark: SparkSession) -> None:
    event = postgresql_event(before=HYBRID - 8, lsn=HYBRID)
    first, second, again = changed(spark, "yugabytedb", (ordered(event, nth) for nth in (9, 10, 9)))
    assert first["position"] < second["position"]
    assert first["identity"] != second["identity"]
    assert (first["position"], first["identity"]) == (again["position"], again["identity"])


def test_an_end_by_hybrid_time_is_above_its_rows_and_not_above_the_next(
    spark: SparkSession,
) -> None:
    mine = ordered(postgresql_event(before=HYBRID - 8, lsn=HYBRID), 2**31)
    later = ordered(postgresql_event(before=HYBRID + 1, lsn=HYBRID + 8), 1)
    row, following = (one["position"] for one in changed(spark, "yugabytedb", [mine, later]))
    assert row < end_position(spark, "yugabytedb", f"7:{HYBRID + 1}") < following


def test_a_row_by_grpc_is_where_its_transaction_committed_then_where_it_was_written(
    spark: SparkSession,
) -> None:
    (row,) = changed(spark, "yugabytedb-grpc", [grpc_event(HYBRID + 4096, HYBRID)])
    assert row["position"] == after(0, HYBRID + 4096, HYBRID)
    assert (row["collection"], row["kind"]) == ("public.a", Kind.ROW)


def test_a_row_by_grpc_keeps_its_place_when_a_restart_asks_from_another_checkpoint(
    spark: SparkSession,
) -> None:
    # Both children of a split tablet go on after it; each answer has the checkpoint it began at.
    sent = [
        grpc_event(HYBRID, HYBRID, lsn="1:2::0:5"),
        grpc_event(HYBRID, HYBRID, lsn="1:9:a2V5:7:5", tablet_id="other"),
    ]
    one, again = changed(spark, "yugabytedb-grpc", sent)
    assert (one["position"], one["identity"]) == (again["position"], again["identity"])


def test_times_from_2041_on_come_after_those_before(spark: SparkSession) -> None:
    times = [0, 1, 2**63 - 1, -(2**63), -1]
    rows = changed(spark, "yugabytedb-grpc", (grpc_event(time) for time in times))
    assert [row["position"] for row in rows] == sorted(row["position"] for row in rows)


def test_a_snapshot_by_grpc_is_not_marked_and_is_at_its_own_time(spark: SparkSession) -> None:
    events = [
        grpc_event(HYBRID, HYBRID, op="r"),
        grpc_event(HYBRID + 1, HYBRID - 4096, op="u"),
        grpc_event(None, op="c"),
    ]
    rows = changed(spark, "yugabytedb-grpc", events)
    assert [row["kind"] for row in rows] == [Kind.ROW, Kind.ROW, Kind.MALFORMED]
    assert rows[0]["position"] < rows[1]["position"]


def test_only_an_update_may_lack_cells(spark: SparkSession) -> None:
    events = [postgresql_event(op=op) for op in ("c", "u", "d", "r")]
    rows = changed(spark, "yugabytedb", events, may_omit=F.lit(True))
    assert [row["may_be_masked"] for row in rows] == [False, True, False, False]
