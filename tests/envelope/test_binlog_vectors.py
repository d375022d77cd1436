"""Hudi's MySQL vectors, and those that it lacks, as the order of positions.

Numbers are those of the list of vectors; ``a < b`` is "b arrived after a or before it, b stays".
"""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakeingest.decode.json.envelope import decode_envelope
from lakeingest.envelope.change import FAMILIES
from lakeingest.envelope.epoch import end_epoch, row_epoch
from lakeingest.position import Epoch
from tests.envelope.records import binlog_event, changed, logged

A, B = "0e4d5dcd-a33b-11ea-80f1-02010a22a99e", "7c1de3f2-3fd2-11e6-9cdc-42010af000bc"
TAKEN_OVER = (Epoch(0, A, highest=100), Epoch(1, B, highest=5), Epoch(2, A, lowest=101))

Place = tuple[str, int]
"""File and offset."""

PAIRS: dict[str, tuple[Place, Place]] = {
    "10: an update in a later file": (("mysql-bin.00001", 111), ("mysql-bin.00002", 11)),
    "11: a create that is late": (("mysql-bin.00000", 23), ("mysql-bin.00000", 123)),
    "12: a delete that is late": (("mysql-bin.00000", 222), ("mysql-bin.00001", 111)),
    "13: an earlier offset": (("mysql-bin.00001", 50), ("mysql-bin.00001", 100)),
    "13: one digit fewer": (("mysql-bin.00000", 1), ("mysql-bin.00000", 10)),
    "16: a file number with more digits": (("mysql-bin.9", 1), ("mysql-bin.12", 1)),
    "16: a stored file and a newer one": (("mysql-bin.10", 1), ("mysql-bin.12", 1)),
    "22: the number gains a digit": (("mysql-bin.999999", 900), ("mysql-bin.1000000", 4)),
}


@pytest.fixture(scope="module")
def by_place(spark: SparkSession) -> dict[Place, str]:
    places = sorted({place for pair in PAIRS.values() for place in pair})
    rows = changed(spark, "mysql", [binlog_event(None, file=file, pos=pos) for file, pos in places])
    return {place: row["position"] for place, row in zip(places, rows, strict=True)}


@pytest.mark.parametrize("name", PAIRS)
def test_of_two_places_the_later_one_stays(by_place: dict[Place, str], name: str) -> None:
    older, newer = PAIRS[name]
    assert by_place[older] < by_place[newer]


def test_an_equal_place_is_the_same_event_again(spark: SparkSession) -> None:
    """Vector 13, equal: a repetition has the position that is there already."""
    rows = changed(spark, "mysql", [binlog_event(f"{A}:7")] * 2)
    assert len({(row["position"], row["identity"]) for row in rows}) == 1


def epochs_of(spark: SparkSession, gtids: list[str]) -> list[int]:
    events = logged(spark, (binlog_event(gtid, gtid=gtid) for gtid in gtids))
    envelopes = decode_envelope(events, source=FAMILIES["mysql"].source).orderBy("offset")
    epoch = row_epoch(FAMILIES["mysql"], 0, TAKEN_OVER)
    ids = [row[0] for row in envelopes.select(epoch).collect()]
    of_end = end_epoch(FAMILIES["mysql"], 0, TAKEN_OVER, F.col("transaction.id"))
    assert [row[0] for row in envelopes.select(of_end).collect()] == ids
    return ids


def test_a_transaction_is_in_the_epoch_of_its_server_and_number(spark: SparkSession) -> None:
    """Vector 23: the server that took over has lower numbers, files and offsets."""
    gtids = [f"{A}:1", f"{A}:100", f"{B}:1", f"{B}:5", f"{A}:101", f"{A}:900"]
    assert epochs_of(spark, gtids) == [0, 0, 1, 1, 2, 2]


def test_what_no_end_has_told_of_yet_is_in_an_epoch_to_come(spark: SparkSession) -> None:
    assert epochs_of(spark, [f"{B}:6", f"{A}:billing:5", "0-1-5"]) == [3, 3, 3]


def positions(
    spark: SparkSession, epochs: tuple[Epoch, ...], *rows: tuple[str, str, int]
) -> list[str]:
    """Return the positions of rows: GTID, file and offset."""
    events = (binlog_event(gtid, gtid=gtid, file=file, pos=pos) for gtid, file, pos in rows)
    return [row["position"] for row in changed(spark, "mysql", events, epochs=epochs)]


def test_rows_after_a_failover_lie_above_all_before_it(spark: SparkSession) -> None:
    row_positions = positions(
        spark,
        TAKEN_OVER,
        (f"{A}:99", "mysql-bin.000009", 900),
        (f"{A}:100", "mysql-bin.000009", 990),
        (f"{B}:1", "mysql-bin.000001", 4),
        (f"{B}:5", "mysql-bin.000001", 400),
        (f"{A}:101", "mysql-bin.000010", 4),
    )
    assert row_positions == sorted(set(row_positions))


@pytest.mark.parametrize(
    ("domain", "inside", "outside"),
    [
        (A, [f"{A}:1", f"{A}:10"], [f"{A}:tag:1", f"{B}:1", "0-1-1", A]),
        (f"{A}:*", [f"{A}:tag:1", f"{A}:other:1"], [f"{B}:tag:1", f"{B}:1", "0-1-1", A]),
        ("0", ["0-1-1", "0-2-1"], ["1-0-1", "00-1-1", f"{A}:0"]),
        (
            "file=a.b",
            ["file=a.b.000001,pos=4", "file=a.b.1000000,pos=4"],
            ["file=a.000001,pos=4", "file=a.b.c.000001,pos=4", "0-1-1"],
        ),
    ],
)
def test_the_cheap_check_of_a_domain_agrees_with_taking_the_id_apart(
    spark: SparkSession, domain: str, inside: list[str], outside: list[str]
) -> None:
    domains = FAMILIES["mysql"].domains
    assert domains is not None
    ids = [*inside, *outside]
    frame = spark.createDataFrame([(id_,) for id_ in ids], "id string").coalesce(1)
    rows = frame.select(
        "id",
        domains.is_in(F.col("id"), domain).alias("cheap"),
        (domains.domain(F.col("id")) == domain).alias("exact"),
    ).collect()
    assert {row["id"]: row["cheap"] for row in rows} == {id_: id_ in inside for id_ in ids}
    assert all(row["exact"] for row in rows if row["cheap"])


def test_where_a_server_has_tags_its_transactions_lie_as_its_binlog_has_them(
    spark: SparkSession,
) -> None:
    """Numbers of tags go their own ways; what came before the first tag keeps its place."""
    rows = (
        (f"{A}:99", "mysql-bin.000009", 900),
        (f"{A}:100", "mysql-bin.000009", 990),
        (f"{A}:billing:7", "mysql-bin.999999", 4),
        (f"{A}:101", "mysql-bin.999999", 400),
        (f"{A}:audit:3", "mysql-bin.1000000", 4),
        (f"{A}:billing:8", "mysql-bin.1000000", 300),
    )
    in_file_order = positions(spark, (Epoch(0, A, highest=100), Epoch(1, f"{A}:*")), *rows)
    by_number = positions(spark, (Epoch(0, A),), *rows)
    assert in_file_order == sorted(set(in_file_order))
    assert in_file_order[:2] == by_number[:2]
    assert by_number != sorted(by_number)
