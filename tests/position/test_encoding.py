"""Encoded positions sort byte by byte as the integers do; marks sort as they promise."""

from __future__ import annotations

import itertools
import random

from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakeingest.position import (
    COMPONENT_WIDTH,
    after,
    component,
    inherited,
    is_missing,
    missing_below,
    position,
)

EPOCHS = st.integers(0, 2**16 - 1)
COMPONENTS = st.integers(0, 2**63 - 1) | st.integers(0, 300)
PLACES = st.tuples(EPOCHS, COMPONENTS, COMPONENTS)

Place = tuple[int, bool, int, int]
"""Epoch, streaming, two components."""


def drawn(count: int) -> list[Place]:
    """Places that differ in one digit, in the number of digits, at the edges; and random ones."""
    edges = [0, 1, 9, 10, 15, 16, 99, 100, 999_999, 1_000_000, 2**31, 2**32, 2**53, 2**63 - 1]
    draw = random.Random(20261121)
    return [
        (
            draw.choice([0, 1, 9, 10, 255, 256, 2**16 - 1]),
            draw.random() < 0.7,
            draw.choice([draw.choice(edges), draw.randrange(2**63), draw.randrange(50)]),
            draw.choice([draw.choice(edges), draw.randrange(2**63)]),
        )
        for _ in range(count)
    ]


def encoded_by_spark(spark: SparkSession, places: list[Place]) -> list[str | None]:
    frame = spark.createDataFrame(
        [(n, *place) for n, place in enumerate(places)],
        "n int, epoch int, streaming boolean, a bigint, b bigint",
    )
    encoded = position(
        F.col("epoch"), F.col("streaming"), component(F.col("a")), component(F.col("b"))
    )
    return [row[0] for row in frame.coalesce(1).orderBy("n").select(encoded).collect()]


@settings(max_examples=500, deadline=None)
@given(st.lists(PLACES, min_size=2, max_size=8))
def test_the_order_of_encoded_positions_is_the_order_of_the_numbers(
    places: list[tuple[int, int, int]],
) -> None:
    encoded = [after(epoch, first, second) for epoch, first, second in places]
    assert sorted(encoded, key=str.encode) == [after(*place) for place in sorted(places)]
    assert len(set(encoded)) == len(set(places))


def test_spark_encodes_and_sorts_as_the_numbers_do(spark: SparkSession) -> None:
    places = drawn(2_000)
    encoded = encoded_by_spark(spark, places)
    for place, text in zip(places, encoded, strict=True):
        epoch, streaming, first, second = place
        assert text is not None
        assert len(text) == 4 + 1 + 2 * COMPONENT_WIDTH
        if streaming:
            assert text == after(epoch, first, second)
    by_text = sorted(zip(encoded, places, strict=True), key=lambda pair: str(pair[0]).encode())
    assert [place for _, place in by_text] == sorted(places)


def test_a_snapshot_row_sorts_below_every_streamed_change_of_its_epoch(spark: SparkSession) -> None:
    top, bottom = 2**63 - 1, 0
    snapshot, stream, later = encoded_by_spark(
        spark, [(3, False, top, top), (3, True, bottom, bottom), (4, False, bottom, bottom)]
    )
    assert str(snapshot) < str(stream) < str(later)


def test_a_position_with_an_unknown_component_is_null(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(None, 1)], "a bigint, b bigint")
    encoded = position(F.lit(0), F.lit(True), component(F.col("a")), component(F.col("b")))
    assert frame.select(encoded).collect()[0][0] is None


def test_marks_and_inherited_positions_sort_between_their_neighbours(spark: SparkSession) -> None:
    """``missing_below(p)`` and ``inherited(p, q)`` lie above p and below the next position."""
    places = sorted({after(0, place[2], place[3]) for place in drawn(60)} | {after(0, 0, 0)})
    pairs = list(itertools.product(places, repeat=2))
    frame = spark.createDataFrame(pairs, "p string, q string").coalesce(1)
    rows = frame.select(
        "p",
        "q",
        inherited(F.col("p"), F.col("q")).alias("inherited"),
        missing_below(F.col("p")).alias("missing"),
        missing_below().alias("nothing"),
        is_missing(missing_below(F.col("p"))).alias("marks"),
        is_missing(missing_below()).alias("bare"),
        is_missing(inherited(F.col("p"), F.col("q"))).alias("not_inherited"),
        is_missing(F.col("p")).alias("not_plain"),
    ).collect()
    following = dict(itertools.pairwise(places))
    for row in rows:
        p = row["p"]
        assert row["nothing"] < p < row["missing"] < row["inherited"]
        if p in following:
            assert row["inherited"] < following[p]
        assert row["marks"]
        assert row["bare"]
        assert not row["not_inherited"]
        assert not row["not_plain"]
    # Two values carried by the same move keep the order in which they were written.
    by_move = {(row["p"], row["q"]): row["inherited"] for row in rows}
    for p in places:
        carried = [by_move[p, q] for q in places]
        assert carried == sorted(carried)


def test_a_decimal_text_would_sort_wrong_where_the_encoding_does_not() -> None:
    assert str(9) > str(10)
    assert after(0, 9) < after(0, 10)
    assert str(999_999) > str(1_000_000)
    assert after(0, 999_999) < after(0, 1_000_000)
