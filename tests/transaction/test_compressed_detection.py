"""Which transactions cannot be ordered, because the binlog has one place for several statements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from lakeingest.frame_schemas import BOUNDARY, CHANGE, INSIDE, Kind
from lakeingest.transaction import completeness
from lakeingest.transaction.completeness import TOO_FEW_ROWS
from lakeingest.transaction.compressed_detection import SHARED_PLACE
from tests.transaction.frames import CASE, Case, Over, change_of, ended, key_of

A = "public.a"


@dataclass(frozen=True)
class At:
    """A row: what was done to which key, and where it lies."""

    op: str
    key: int
    row: int
    place: int | None = 1
    nth: int = 1
    run: str | None = "first"


def statement(op: str, *keys: int, place: int = 1) -> list[At]:
    """Return the rows of one rows event."""
    return [At(op, key, number, place) for number, key in enumerate(keys)]


def changed(*pairs: tuple[int, int]) -> list[At]:
    """Return an update of keys: old and new ones."""
    return [
        At(op, key, number)
        for number, pair in enumerate(pairs)
        for op, key in zip("dc", pair, strict=True)
    ]


CASES: dict[str, tuple[list[At], int | Over, str | None]] = {
    "one insert": (statement("c", 1, 2, 3), 3, None),
    "one delete": (statement("d", 1, 2, 3), 3, None),
    "one update": (statement("u", 1, 2, 3), 3, None),
    "one update that meets a key twice": (statement("u", 1, 1), 2, None),
    "an update of keys": (changed((1, 4), (2, 5)), 4, None),
    "a chain of keys": (changed((3, 4), (2, 3), (1, 2)), 6, None),
    "an update of some keys": ([*changed((1, 4)), At("u", 2, 1)], 3, None),
    "rows that a connector skipped": ([At("u", 1, 4)], 1, None),
    "all of it sent again": (statement("c", 1, 2) * 2, 2, None),
    "a key change whose first half came again": ([At("d", 1, 0), *changed((1, 2))], 2, None),
    "statements at places of their own": (
        [*statement("c", 1, 2), *statement("u", 2, place=2), *statement("d", 2, place=3)],
        4,
        None,
    ),
    "sent in two parts": ([*statement("c", 1), *statement("u", 2)], Over({A: 2}, begins=2), None),
    "only half of it is there": (statement("c", 1), 2, TOO_FEW_ROWS),
    "half of a key change is there": ([At("d", 1, 0), *changed((2, 3))], 4, TOO_FEW_ROWS),
    "two updates of two keys": ([*statement("u", 1), *statement("u", 2)], 2, SHARED_PLACE),
    "six rows, then one of them": (
        [*statement("u", 1, 2, 3, 4, 5, 6), *statement("u", 6)],
        7,
        SHARED_PLACE,
    ),
    "an insert, then a delete of fewer": (
        [*statement("c", 1, 2, 3), *statement("d", 3)],
        4,
        SHARED_PLACE,
    ),
    "a delete, then the same rows inserted": (
        [*statement("d", 1, 2), *statement("c", 1, 2)],
        4,
        SHARED_PLACE,
    ),
    "the same in another order": ([*statement("d", 1, 2), *statement("c", 2, 1)], 4, SHARED_PLACE),
    "one key twice, told by its count": (
        [At("u", 1, 0, nth=1), At("u", 1, 0, nth=2)],
        2,
        SHARED_PLACE,
    ),
    "a statement that two versions of the connector sent": (
        [*statement("u", 1, 2), At("u", 3, 2, place=None), At("u", 4, 3, place=None)],
        4,
        None,
    ),
    "one row counted again by another incarnation": (
        [At("u", 1, 0, nth=7), At("u", 1, 0, nth=2, run="second")],
        Over({A: 1}, begins=2),
        None,
    ),
    "one row counted again by a connector that does not tell itself": (
        [At("u", 1, 0, nth=7, run=None), At("u", 1, 0, nth=2, run=None)],
        Over({A: 1}, begins=2),
        None,
    ),
}
"""Rows, their END or what it counts, and why it is not complete."""


@pytest.fixture(scope="module")
def reasons(spark: SparkSession) -> dict[int, str]:
    """Number of a case -> why it is not complete; one job for all."""
    places = StructType([StructField(name, LongType()) for name in ("place", "row", "nth")])
    schema = StructType([*CHANGE, *StructType().add("end_offset", LongType()).add(INSIDE, places)])
    rows: list[Any] = []
    for number, (lying, _, _) in enumerate(CASES.values()):
        for one in lying:
            change = change_of(
                offset=len(rows),
                kind=Kind.ROW,
                collection=A,
                op=one.op,
                key=str(one.key).encode(),
                transaction_key=key_of(number, 1),
                incarnation=one.run,
                identity=hash((number, one.place, one.row, one.op, one.key)),
            )
            inside = None if one.place is None else (one.place, one.row, one.nth)
            rows.append((*change, number * CASE, inside))
    overs = (end if isinstance(end, Over) else Over({A: end}) for _, end, _ in CASES.values())
    ends = ended(spark, [Case([over]) for over in overs])
    assert ends.columns == BOUNDARY.fieldNames()
    assigned = spark.createDataFrame(rows, schema).coalesce(1)
    short = completeness.incomplete_transactions(assigned, ends, F.lit(True)).collect()
    return {row["end_offset"] // CASE: row["reason"] for row in short}


@pytest.mark.parametrize("name", CASES)
def test_rows_at_one_place_are_those_of_one_statement_or_are_noticed(
    reasons: dict[int, str], name: str
) -> None:
    assert reasons.get(list(CASES).index(name)) == CASES[name][2]
