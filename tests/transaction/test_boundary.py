"""BEGIN and END to boundaries: repeated, missing, going back, foreign."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from lakeingest.decode.encodings import Encodings
from lakeingest.plan.spec import PipelineSpec
from lakeingest.plan.window import window_boundaries, window_metadata
from tests.envelope.records import Record, frame
from tests.transaction.frames import CASE, metadata

Boundaries = list[tuple[int, int, int, bool]]
"""Of each boundary: offset within the case, transaction, BEGINs up to it, implied."""

MARIADB: dict[str, tuple[str, Boundaries]] = {
    "one transaction": ("B1 E1", [(1, 1, 1, False)]),
    "two in commit order": ("B1 E1 B2 E2", [(1, 1, 1, False), (3, 2, 1, False)]),
    "END without its BEGIN": ("E1", [(0, 1, 0, False)]),
    "a BEGIN alone": ("B1", []),
    "END repeated": ("B1 E1 B1 E1", [(1, 1, 1, False)]),
    "END repeated after others": (
        "B1 E1 B2 E2 B1 E1 B2 E2 B3 E3",
        [(1, 1, 1, False), (3, 2, 1, False), (9, 3, 1, False)],
    ),
    "BEGIN repeated": ("B1 B1 E1", [(2, 1, 2, False)]),
    "BEGIN repeated twice": ("B1 B1 B1 E1", [(3, 1, 3, False)]),
    "a BEGIN followed by a later one": ("B1 B2 E2", [(0, 1, 1, True), (2, 2, 1, False)]),
    "several in a row": ("B1 B2 B3 E3", [(0, 1, 1, True), (1, 2, 1, True), (3, 3, 1, False)]),
    "a BEGIN followed by an earlier one": ("B7 B5 E5", [(2, 5, 1, False)]),
    "a BEGIN followed by an earlier one that comes again": (
        "B7 B5 E5 B6 E6 B7 E7",
        [(2, 5, 1, False), (4, 6, 1, False), (6, 7, 2, False)],
    ),
    "a BEGIN followed by its own repetition": ("B1 B1", []),
    "an implied end that comes again": ("B1 B2 E2 B1 B2 E2", [(0, 1, 1, True), (2, 2, 1, False)]),
    "a BEGIN that has its END later": ("B1 B2 B1 E1 B2 E2", [(3, 1, 2, False), (5, 2, 2, False)]),
    "a foreign message between": ("B1 ?9 B2 E2", [(0, 1, 1, True), (3, 2, 1, False)]),
    "only foreign messages": ("?1 ?2", []),
    "numbers of more digits": ("B9 B10 E10", [(0, 9, 1, True), (2, 10, 1, False)]),
    "a TRUNCATE's BEGIN repeated": ("B1 B1 B2 E2", [(1, 1, 2, True), (3, 2, 1, False)]),
    "a TRUNCATE's BEGIN repeated after others": (
        "B7 B5 E5 B6 E6 B7 B8 E8",
        [(2, 5, 1, False), (4, 6, 1, False), (5, 7, 2, True), (7, 8, 1, False)],
    ),
}

OPEN: dict[str, list[tuple[int, int]]] = {
    "a BEGIN alone": [(0, 1)],
    "a BEGIN followed by its own repetition": [(1, 1)],
    "a BEGIN followed by an earlier one": [(0, 7)],
}
"""Offset and transaction of those that are open; in all other cases none is."""


def stream(case: int, words: str, id_of: str) -> list[tuple[str | None, str]]:
    status = {"B": "BEGIN", "E": "END", "?": None}
    return [
        (status[word[0]], id_of.format(number=case * 100 + int(word[1:]))) for word in words.split()
    ]


def found_in(
    spark: SparkSession, connector: str, streams: Sequence[Sequence[tuple[str | None, str]]]
) -> list[Row]:
    spec = PipelineSpec(connector, Encodings())
    return window_boundaries(metadata(spark, streams), spec).orderBy("end_offset").collect()


@pytest.fixture(scope="module")
def topic(spark: SparkSession) -> list[Row]:
    streams = [stream(n, words, "0-1-{number}") for n, (words, _) in enumerate(MARIADB.values())]
    return found_in(spark, "mariadb", streams)


@pytest.fixture(scope="module")
def mariadb(topic: list[Row]) -> dict[str, Boundaries]:
    boundaries: dict[str, Boundaries] = {name: [] for name in MARIADB}
    for row in topic:
        if not row["open"]:
            name, offset, number = placed(row)
            boundaries[name].append((offset, number, row["begins"], row["implied"]))
    return boundaries


def placed(row: Row) -> tuple[str, int, int]:
    case, offset = divmod(row["end_offset"], CASE)
    return list(MARIADB)[case], offset, int(row["id"].rpartition("-")[2]) - case * 100


@pytest.mark.parametrize("name", MARIADB)
def test_a_stream_of_begin_and_end_gives_its_transactions(
    mariadb: dict[str, Boundaries], name: str
) -> None:
    assert mariadb[name] == MARIADB[name][1]


def test_a_begin_that_no_end_and_no_later_begin_follows_is_open(topic: list[Row]) -> None:
    begins: dict[str, list[tuple[int, int]]] = {}
    for name, offset, number in (placed(row) for row in topic if row["open"]):
        begins.setdefault(name, []).append((offset, number))
    assert begins == OPEN


def test_postgresql_has_no_implied_ends_and_groups_by_transaction_number(
    spark: SparkSession,
) -> None:
    streams = [
        [("BEGIN", "1:10"), ("BEGIN", "2:20"), ("END", "2:25")],
        [("BEGIN", "1001:10"), ("BEGIN", "1001:10"), ("END", "1001:15")],
        # The number comes again after a wrap-around: two transactions.
        [("BEGIN", "2001:10"), ("END", "2001:15"), ("BEGIN", "2001:90"), ("END", "2001:95")],
        # The whole transaction is sent again: one.
        [("BEGIN", "3001:10"), ("END", "3001:15"), ("BEGIN", "3001:10"), ("END", "3001:15")],
    ]
    rows = found_in(spark, "postgresql", streams)
    assert [(row["id"], row["end_offset"]) for row in rows if row["open"]] == [("1:10", 0)]
    rows = [row for row in rows if not row["open"]]
    assert [(row["id"], row["begins"], row["implied"]) for row in rows] == [
        ("2:25", 1, False),
        ("1001:15", 2, False),
        ("2001:15", 1, False),
        ("2001:95", 2, False),
        ("3001:15", 1, False),
    ]
    assert [row["transaction_key"] for row in rows] == ["2", "1001", "2001", "2001", "3001"]
    assert rows[2]["end_position"] < rows[3]["end_position"]


def test_mysql_has_no_implied_ends(spark: SparkSession) -> None:
    words = [("BEGIN", "uuid:1"), ("BEGIN", "uuid:2"), ("END", "uuid:2")]
    assert [row["open"] for row in found_in(spark, "mysql", [words])] == [True, False]


def test_ids_of_several_octets_per_character_are_kept(spark: SparkSession) -> None:
    ids = [f"file=größe-日本.000009,pos={pos}" for pos in (4, 90)]
    rows = found_in(spark, "mysql", [[(word, id_) for id_ in ids for word in ("BEGIN", "END")]])
    assert [row["id"] for row in rows] == ids
    assert {row["domain"] for row in rows} == {"file=größe-日本"}
    assert rows[0]["end_position"] < rows[1]["end_position"]


def test_counts_and_commit_time_are_those_of_end(spark: SparkSession) -> None:
    (boundary,) = found_in(spark, "postgresql", [[("BEGIN", "1:10"), ("END", "1:15")]])
    assert boundary["event_count"] == 2
    assert [tuple(item) for item in boundary["collections"]] == [("public.a", 2)]
    empty = metadata(spark, [[("BEGIN", "1:10"), ("END", "1:15")]])
    empty = empty.withColumn("event_count", F.lit(None).cast("bigint")).withColumn(
        "data_collections", F.lit(None).cast(empty.schema["data_collections"].dataType)
    )
    (row,) = window_boundaries(empty, PipelineSpec("postgresql", Encodings())).collect()
    assert (row["event_count"], row["collections"]) == (0, [])
    assert row["committed_at"] is not None


@pytest.mark.parametrize("connector", ["postgresql", "mariadb"])
def test_a_record_of_the_topic_is_parsed_once(spark: SparkSession, connector: str) -> None:
    """A condition on what the parser reads could be moved below it, with a parser of its own."""
    spec = PipelineSpec(connector, Encodings())
    records = frame(spark, [Record("topic", {"status": "BEGIN", "id": "7:1"})])
    boundaries = window_boundaries(window_metadata(records, spec), spec)
    assert str(boundaries._jdf.queryExecution().optimizedPlan().toString()).count("from_json(") == 1


UNREADABLE = {
    "truncated": '{"status":"END","id":"7:120","event_count":1,"data_coll',
    "a count that is no number": {"status": "END", "id": "7:120", "event_count": "many"},
    "an id that is none": {"status": "END", "id": "seven", "event_count": 1},
    "no id": {"status": "END", "event_count": 1},
}


def test_a_record_that_cannot_be_read_is_a_boundary_below_all_and_not_dropped(
    spark: SparkSession,
) -> None:
    """Dropped it would hold its rows back for ever, or count none of them."""
    records = [Record("tx", value, None, 0, n) for n, value in enumerate(UNREADABLE.values())]
    topic = window_metadata(frame(spark, records), PipelineSpec("postgresql", Encodings()))
    rows = window_boundaries(topic, PipelineSpec("postgresql", Encodings())).collect()
    assert {row["end_offset"]: row["end_position"] for row in rows} == dict.fromkeys(range(4), "")
