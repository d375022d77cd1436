"""Positions by columns that a user names: which texts are places in an order."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakeingest.envelope.ordering_columns import ordered_position
from lakeingest.position import after

PLACES: dict[str, int | None] = {
    "0": 0,
    "7": 7,
    "1767357000500000999": 1767357000500000999,
    "9223372036854775807": 2**63 - 1,
    "9223372036854775808": None,
    "9" * 19: None,
    "1" * 20: None,
    "-1": None,
    "1.5": None,
    "a": None,
    "1970-01-01T00:00:01Z": 1_000_000,
}


def test_whole_numbers_of_63_bits_and_timestamps_are_places(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(text, 5) for text in PLACES], "text string, offset bigint")
    place = ordered_position(F.lit(0), F.array("text"))
    by_text = {row["text"]: row["at"] for row in frame.select("text", place.alias("at")).collect()}
    assert by_text == {text: None if at is None else after(0, at, 5) for text, at in PLACES.items()}
