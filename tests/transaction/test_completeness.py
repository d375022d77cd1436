"""Which transactions are complete: each rule by a case that it alone decides."""

from __future__ import annotations

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lakeingest.frame_schemas import Kind
from lakeingest.plan.window import is_counted
from lakeingest.transaction import completeness
from lakeingest.transaction.completeness import NO_WHOLE_INCARNATION, TOO_FEW_PLACES, TOO_FEW_ROWS
from tests.transaction.frames import CASE, Case, Over, Seen, changes, ended

A, B = "public.a", "public.b"


def rows(*numbers: int, run: str = "first", collection: str = A) -> list[Seen]:
    return [Seen(number, run, collection) for number in numbers]


def keyless(number: int, nth: int, run: str | None = "first") -> Seen:
    return Seen(number, run, nth=nth, key=None)


def unnamed(*numbers: int) -> list[Seen]:
    """Rows of one incarnation that names none."""
    return [Seen(number, None, nth=nth) for nth, number in enumerate(numbers, 1)]


AGAIN = [Over({A: 1}, commit=10), Over({A: 1}, 2, commit=20)]
"""ENDs of two transactions of one number."""

Lacking = set[tuple[str | None, int, int | None]]
"""Collection, expected, found."""

COUNTED: dict[str, tuple[Case, Lacking]] = {
    "all rows are there": (Case([Over({A: 2})], rows(1, 2)), set()),
    "a row is missing": (Case([Over({A: 3})], rows(1, 2)), {(A, 3, 2)}),
    "all rows are missing": (Case([Over({A: 3})]), {(A, 3, 0)}),
    "a row came twice instead": (Case([Over({A: 2})], rows(1, 1)), {(A, 2, 1)}),
    "a row came twice as well": (Case([Over({A: 2})], rows(1, 1, 2, 2)), set()),
    "two tables, one lacks a row": (
        Case([Over({A: 1, B: 2})], [*rows(1), *rows(2, collection=B)]),
        {(B, 2, 1)},
    ),
    "rows of one table do not stand in for another": (
        Case([Over({A: 2, B: 1})], rows(1, 2, 3)),
        {(B, 1, 0)},
    ),
    "an empty transaction": (Case([Over({})]), set()),
    "more rows than END counts": (Case([Over({A: 1})], rows(1, 2)), set()),
    "a table that is not read": (Case([Over({A: 1, "public.hidden": 5})], rows(1)), set()),
    "a filtered table": (Case([Over({A: 1, "public.filtered": 5})], rows(1)), set()),
    "a logical message": (
        Case([Over({A: 1, "io.debezium.X$LogicalDecodingMessageId@50a5e486": 1})], rows(1)),
        set(),
    ),
    "the same table counted twice": (
        Case([Over({A: 1}), Over({A: 2}, 2, 2)], rows(1)),
        {(A, 2, 0)},
    ),
    "a truncate is a row": (Case([Over({A: 2})], [Seen(1), Seen(2, kind=Kind.TRUNCATE)]), set()),
    "a message is no row": (
        Case([Over({A: 2})], [Seen(1), Seen(2, kind=Kind.MESSAGE)]),
        {(A, 2, 1)},
    ),
    "a number that came again, first one short": (Case(AGAIN, [Seen(1, at=10)]), {(A, 1, 0)}),
    "a number that came again, second one short": (Case(AGAIN, [Seen(1, at=0)]), {(A, 1, 0)}),
    "a number that came again, both whole": (Case(AGAIN, [Seen(1, at=0), Seen(1, at=10)]), set()),
}


KEYLESS: dict[str, tuple[Case, Lacking]] = {
    "every row has a place": (Case([Over({A: 2})], [keyless(1, 1), keyless(2, 2)]), set()),
    "rows of one COPY share a place": (
        Case([Over({A: 3})], [keyless(1, 1), keyless(1, 2), keyless(2, 3)]),
        set(),
    ),
    "a row of a COPY is missing": (
        Case([Over({A: 3})], [keyless(1, 1), keyless(1, 2)]),
        {(A, 3, 2)},
    ),
    # As in keyless-count: what the second run repeats is not what the first one lost.
    "rows that another run sends again": (
        Case([Over({A: 3})], [keyless(1, 1), keyless(2, 2), keyless(2, 1, "second")]),
        {(A, 3, 2)},
    ),
    "a COPY that another run sends again": (
        Case(
            [Over({A: 3})],
            [keyless(1, n, run) for run, start in (("one", 1), ("two", 2)) for n in (start, 9)],
        ),
        {(A, 3, 2)},
    ),
    "one run that has no name": (
        Case([Over({A: 2})], [keyless(1, 1, None), keyless(1, 2, None)]),
        set(),
    ),
    "two runs that have no name": (
        Case([Over({A: 3})], [keyless(1, 1, None), keyless(2, 2, None), keyless(2, 1, None)]),
        {(A, 3, 2)},
    ),
}
"""Of rows without a key: what is lacking for certain."""


def selected() -> Column:
    """``public.hidden`` is not read; of ``public.filtered`` a transform drops rows."""
    return is_counted(F.col("data_collection").isin(A, B, "public.filtered"), ("public.filtered",))


def assigned_to_ends(spark: SparkSession, cases: list[Case]) -> tuple[DataFrame, DataFrame]:
    """Return rows with the END that each belongs to, and the ENDs."""
    boundaries = ended(spark, cases)
    rows = completeness.transactional(changes(spark, cases))
    return completeness.with_end_offset(rows, boundaries), boundaries


def short_of(spark: SparkSession, cases: list[Case]) -> list[tuple[int, tuple]]:  # type: ignore[type-arg]
    assigned, boundaries = assigned_to_ends(spark, cases)
    return [
        (row["end_offset"], (row["collection"], row["expected"], row["found"], row["reason"]))
        for row in completeness.incomplete_transactions(assigned, boundaries, selected()).collect()
    ]


@pytest.fixture(scope="module")
def counted(spark: SparkSession) -> dict[str, Lacking]:
    gaps: dict[str, Lacking] = {name: set() for name in COUNTED}
    names, cases = list(COUNTED), [case for case, _ in COUNTED.values()]
    for offset, (collection, expected, there, reason) in short_of(spark, cases):
        assert reason == TOO_FEW_ROWS
        gaps[names[offset // CASE]].add((collection, expected, there))
    return gaps


@pytest.mark.parametrize("name", COUNTED)
def test_a_transaction_is_held_until_each_table_has_the_distinct_rows_that_end_counts(
    counted: dict[str, Lacking], name: str
) -> None:
    assert counted[name] == COUNTED[name][1]


def test_rows_without_a_key_count_once_however_many_runs_send_them(spark: SparkSession) -> None:
    rows, boundaries = assigned_to_ends(spark, [case for case, _ in KEYLESS.values()])
    gaps: dict[str, Lacking] = {name: set() for name in KEYLESS}
    names = list(KEYLESS)
    for row in completeness.incomplete_by_incarnation(rows, boundaries, selected()).collect():
        lacking = (row["collection"], row["expected"], row["found"])
        gaps[names[row["end_offset"] // CASE]].add(lacking)
    assert gaps == {name: expected for name, (_, expected) in KEYLESS.items()}


def test_counting_places_finds_all_that_may_lack_rows_without_a_key(spark: SparkSession) -> None:
    doubted = short_of(spark, [case for case, _ in KEYLESS.values()])
    assert {reason for _, (_, _, _, reason) in doubted} == {TOO_FEW_PLACES}
    names = list(KEYLESS)
    lacking = {name for name, (_, expected) in KEYLESS.items() if expected}
    assert {names[offset // CASE] for offset, _ in doubted} >= lacking


def test_a_number_that_came_again_gives_each_row_to_the_first_end_above_it(
    spark: SparkSession,
) -> None:
    case = Case(AGAIN, [Seen(1, at=0), Seen(9, at=0), Seen(1, at=10), Seen(1, at=20)])
    assigned = completeness.with_end_offset(changes(spark, [case]), ended(spark, [case]))
    assert [row["end_offset"] for row in assigned.orderBy("offset").collect()] == [0, 0, 1, None]


INTERRUPTED: dict[str, tuple[Over, list[Seen], bool]] = {
    "one BEGIN is not asked": (Over({A: 2}, 1), rows(1), False),
    "the second incarnation sent all that END counts": (
        Over({A: 2}, 2),
        rows(1, 2, 3) + rows(4, 5, run="second"),
        False,
    ),
    # As recorded in mariadb-kill: the first one's rows alone meet the count.
    "the second incarnation's rows are still under way": (
        Over({A: 2}, 2),
        rows(1, 2, 3) + rows(4, run="second"),
        True,
    ),
    "nothing of the second incarnation is there": (Over({A: 2}, 2), rows(1, 2, 3), True),
    "both overlap": (Over({A: 3}, 2), rows(1, 2, 3, 4) + rows(3, 4, 5, run="second"), False),
    "repetitions inside one incarnation do not count": (
        Over({A: 2}, 2),
        rows(1, 2, 3) + rows(4, 4, run="second"),
        True,
    ),
    "the third of three": (
        Over({A: 1}, 3),
        rows(1, 2, 3) + rows(4, 5, run="second") + rows(6, run="third"),
        False,
    ),
    "two tables together": (
        Over({A: 1, B: 1}, 2),
        rows(1, 2, 3) + rows(4, run="second") + rows(5, run="second", collection=B),
        False,
    ),
    "an implied end has no count": (Over({}, 2, implied=True), rows(1), False),
    "END counts nothing": (Over({}, 2), rows(1, 2), False),
    "the second of two that have no names": (
        Over({A: 2}, 2),
        unnamed(1, 2, 3) + unnamed(4, 5),
        False,
    ),
    "a row of the second, without names, is under way": (
        Over({A: 2}, 2),
        unnamed(1, 2, 3) + unnamed(4, 5)[1:],
        True,
    ),
    "all rows of the second, without names, are under way": (
        Over({A: 2}, 2),
        unnamed(1, 2, 3),
        True,
    ),
    "both overlap, without names": (Over({A: 3}, 2), unnamed(1, 2, 3, 4) + unnamed(3, 4, 5), False),
    "both overlap, without names, a row is missing": (
        Over({A: 3}, 2),
        unnamed(1, 2, 3, 4) + unnamed(3, 4, 5)[:2],
        True,
    ),
    "the whole transaction again, without names": (
        Over({A: 3}, 2),
        unnamed(1, 2) + unnamed(1, 2, 3),
        False,
    ),
}
"""END, rows, and whether the transaction is held."""


def interrupted(spark: SparkSession, cases: list[Case]) -> set[int]:
    assigned, boundaries = assigned_to_ends(spark, cases)
    ends = completeness.without_whole_incarnation(assigned, boundaries, selected()).collect()
    assert {row["reason"] for row in ends} <= {NO_WHOLE_INCARNATION}
    return {row["end_offset"] // CASE for row in ends}


def test_after_a_repeated_begin_one_incarnation_must_have_exactly_ends_rows(
    spark: SparkSession,
) -> None:
    numbers = interrupted(spark, [Case([end], seen) for end, seen, _ in INTERRUPTED.values()])
    outcomes = {name: n in numbers for n, name in enumerate(INTERRUPTED)}
    assert outcomes == {name: expected for name, (_, _, expected) in INTERRUPTED.items()}


def test_the_count_alone_would_release_an_interrupted_transaction(spark: SparkSession) -> None:
    """What ``without_whole_incarnation`` protects from: the count sees nothing wrong there."""
    end, seen, expected = INTERRUPTED["the second incarnation's rows are still under way"]
    assert expected
    assert short_of(spark, [Case([end], seen)]) == []


def test_an_earlier_incarnation_of_the_same_size_does_not_stand_in_for_the_last_one(
    spark: SparkSession,
) -> None:
    """Killed in the very middle: both halves have END's count, and row 4 is still under way."""
    case = Case([Over({A: 2}, 2)], [*rows(1, 2), *rows(3, run="second")])
    assert interrupted(spark, [case]) == {0}


def test_rows_of_a_filtered_table_do_not_hold_an_interrupted_transaction_for_ever(
    spark: SparkSession,
) -> None:
    """A filter drops some rows of a table, not all: those that came must not be counted either."""
    seen = [*rows(1, 2, 3), *rows(4, run="second")]
    seen += rows(5, run="second", collection="public.filtered")
    assert interrupted(spark, [Case([Over({A: 1, "public.filtered": 2}, 2)], seen)]) == set()


def test_a_table_with_an_at_sign_in_its_name_is_counted(spark: SparkSession) -> None:
    frame = spark.createDataFrame(
        [("public.a@b",), ("io.debezium.connector.X$LogicalDecodingMessageId@50a5e486",)],
        "data_collection string",
    ).coalesce(1)
    assert [row[0] for row in frame.select(is_counted(None, ())).collect()] == [True, False]
