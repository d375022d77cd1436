"""Positions of PostgreSQL, MySQL and MariaDB rows: commit order, and numbers as numbers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from lakeingest.decode.json.envelope import decode_envelope
from lakeingest.demo import demo_folder
from lakeingest.envelope import ChangeSpec, changes
from lakeingest.envelope.change import FAMILIES
from lakeingest.frame_schemas import Kind
from lakeingest.position import COMPONENT_WIDTH, after
from tests.envelope.records import (
    Record,
    binlog_event,
    changed,
    end_position,
    frame,
    postgresql_event,
    recorded,
)

TABLES = ("orders", "order_lines", "customers", "ledger", "txlog")


def positions(spark: SparkSession, values: list[Any], connector: str) -> list[str]:
    return [row["position"] for row in changed(spark, connector, values)]


def test_a_postgresql_position_is_the_previous_commit_then_the_record(spark: SparkSession) -> None:
    places = [(None, 110), (None, 111), (9, 8), (10, 9), (10, 10), (99, 1), (100, 1)]
    places.append((2**62, 2**62 + 1))
    events = [postgresql_event(before=before, lsn=lsn) for before, lsn in places]
    row_positions = positions(spark, events, "postgresql")
    assert row_positions == sorted(set(row_positions))
    assert row_positions[0] == after(0, 0, 110)
    assert row_positions[3] == after(0, 11, 9)


def test_an_own_commit_lsn_sorts_together_with_the_previous_one(spark: SparkSession) -> None:
    """A connector that is upgraded in mid-stream sends ``commit_lsn`` from then on."""
    events = [
        postgresql_event(before=100, lsn=110),
        postgresql_event(before=100, lsn=150, commit_lsn=200),
        postgresql_event(before=200, lsn=120),
        postgresql_event(before=200, lsn=130, commit_lsn=300),
    ]
    row_positions = positions(spark, events, "postgresql")
    assert row_positions == sorted(set(row_positions))


def test_a_sequence_that_cannot_be_read_falls_back_or_gives_no_position(
    spark: SparkSession,
) -> None:
    values = [
        postgresql_event(lsn=7, sequence=None),
        postgresql_event(lsn=7, sequence="[]"),
        postgresql_event(lsn=7, sequence="[null,null]"),
        postgresql_event(lsn=None, sequence=None),
    ]
    rows = changed(spark, "postgresql", values)
    assert [row["position"] for row in rows] == [after(0, 0, 7)] * 3 + [None]
    assert [row["kind"] for row in rows] == [Kind.ROW] * 3 + [Kind.MALFORMED]


def test_the_end_of_a_transaction_lies_above_its_rows_and_not_above_later_ones(
    spark: SparkSession,
) -> None:
    events = [postgresql_event(before=100, lsn=199), postgresql_event(before=200, lsn=150)]
    own, first_of_next = positions(spark, events, "postgresql")
    assert own < end_position(spark, "postgresql", "7:200") <= first_of_next


@pytest.fixture(scope="module")
def shop(spark: SparkSession) -> list[Row]:
    """Rows of the recorded run with their transaction; transactions interleave in it."""
    records = [
        Record(line_topic, line["v"], line["k"], line["p"], line["o"])
        for line_topic in (f"t1.public.{table}" for table in TABLES)
        for line in recorded(demo_folder(), line_topic)
    ]
    window = changes(decode_envelope(frame(spark, records)), ChangeSpec("postgresql"))
    return in_transactions(window).collect()


def in_transactions(window: DataFrame) -> DataFrame:
    # The last component; the record itself is not carried on whole.
    lsn = F.conv(F.substring("position", -COMPONENT_WIDTH, COMPONENT_WIDTH), 16, 10).cast("bigint")
    rows = window.where(F.col("kind").isin(Kind.ROW, Kind.TRUNCATE))
    return rows.select("transaction_key", "position", lsn.alias("lsn"))


def commit_order() -> dict[str, int]:
    """Transaction number -> place of its END on the transaction topic."""
    ends: dict[str, int] = {}
    for line in recorded(demo_folder(), "t1.transaction"):
        value = json.loads(line["v"])
        if value["status"] == "END":
            ends.setdefault(value["id"].partition(":")[0], line["o"])
    return ends


def steps_back(rows: list[Row], by: str) -> int:
    """Count the rows that sort, by a column, after a row of a later commit."""
    order = commit_order()
    placed = [order[row["transaction_key"]] for row in sorted(rows, key=lambda row: row[by])]
    return sum(later < earlier for earlier, later in zip(placed, placed[1:], strict=False))


def test_recorded_positions_follow_the_commit_order(shop: list[Row]) -> None:
    assert len(shop) > 4_000
    assert steps_back(shop, "position") == 0


def test_recorded_bare_lsns_do_not_follow_the_commit_order(shop: list[Row]) -> None:
    assert steps_back(shop, "lsn") > 100


MARIADB = ["0-1-9", "0-1-10", "0-2-11", "0-1-12", "0-1-99", "0-1-100"]


def test_mariadb_orders_by_number_within_the_domain_whatever_the_server(
    spark: SparkSession,
) -> None:
    row_positions = positions(spark, [binlog_event(None, gtid=gtid) for gtid in MARIADB], "mariadb")
    assert row_positions == sorted(set(row_positions))
    assert sorted(MARIADB) != MARIADB


def test_offset_and_row_order_the_rows_of_one_binlog_transaction(spark: SparkSession) -> None:
    places = [("0-1-7", 9, 5), *(("0-1-7", 10, row) for row in (0, 9, 10)), ("0-1-8", 1, 0)]
    events = [binlog_event(gtid, pos=pos, row=row) for gtid, pos, row in places]
    row_positions = positions(spark, events, "mariadb")
    assert row_positions == sorted(set(row_positions))
    assert len(row_positions) == 5


def test_binlog_files_and_transaction_ids_compare_as_numbers(spark: SparkSession) -> None:
    names = ["mysql-bin.000009", "mysql-bin.000010", "mysql-bin.999999", "mysql-bin.1000000"]
    by_file = positions(spark, [binlog_event(None, file=name, pos=4) for name in names], "mysql")
    assert by_file == sorted(by_file)
    ids = [f"file={name},pos={pos}" for name in names for pos in (999, 1000)]
    by_id = positions(spark, [binlog_event(id_, file=None) for id_ in ids], "mysql")
    assert by_id == sorted(set(by_id))
    assert len(by_id) == len(ids)
    assert names != sorted(names)


UUID = "0e4d5dcd-a33b-11ea-80f1-02010a22a99e"


def test_mysql_gtids_with_and_without_tag_order_by_number(spark: SparkSession) -> None:
    for prefix in (UUID, f"{UUID}:billing", f"{UUID}:tag_2"):
        gtids = [f"{prefix}:{number}" for number in (1, 9, 10, 99, 100, 2**40)]
        row_positions = positions(spark, [binlog_event(None, gtid=gtid) for gtid in gtids], "mysql")
        assert row_positions == sorted(set(row_positions))
        assert len(row_positions) == len(gtids)


def test_a_binlog_row_without_any_coordinates_has_no_position(spark: SparkSession) -> None:
    (row,) = changed(spark, "mysql", [binlog_event(None, file=None)])
    assert row["position"] is None
    assert row["kind"] == Kind.MALFORMED


IDS = {
    "0-1-10": ("0", 10),
    "0-2-9": ("0", 9),
    "7-1-10": ("7", 10),
    f"{UUID}:10": (UUID, 10),
    f"{UUID}:billing:10": (f"{UUID}:*", 10),
    "file=mysql-bin.000003,pos=1234": ("file=mysql-bin", (3 << 40) + 1234),
    "file=mysql-bin.1000000,pos=4": ("file=mysql-bin", (1_000_000 << 40) + 4),
    "file=other.000003,pos=4": ("file=other", (3 << 40) + 4),
    "nonsense": ("nonsense", None),
}


def test_a_transaction_id_has_a_domain_and_a_number_within_it(spark: SparkSession) -> None:
    domains = FAMILIES["mysql"].domains
    assert domains is not None
    ids = spark.createDataFrame([(id_,) for id_ in IDS], "id string").coalesce(1)
    rows = ids.select(
        "id", domains.domain(F.col("id")).alias("domain"), domains.number(F.col("id")).alias("n")
    ).collect()
    assert {row["id"]: (row["domain"], row["n"]) for row in rows} == IDS


def test_the_end_of_a_binlog_transaction_lies_between_its_rows_and_the_next_ones(
    spark: SparkSession,
) -> None:
    end = end_position(spark, "mariadb", "0-1-9")
    top = 2**31 - 1
    events = [binlog_event("0-1-9", pos=top, row=top), binlog_event("0-2-10", pos=0, row=0)]
    last, following = positions(spark, events, "mariadb")
    assert last < end <= following


def test_a_later_epoch_lies_above_every_position_of_an_earlier_one(spark: SparkSession) -> None:
    (old,) = changed(spark, "postgresql", [postgresql_event(before=2**62, lsn=2**62)], epoch=4)
    first = postgresql_event(op="r", snapshot="first", lsn=1)
    (new,) = changed(spark, "postgresql", [first], epoch=5)
    assert old["position"] < new["position"]
