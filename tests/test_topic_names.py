"""Which topic Debezium writes a table to, and which tables' topics are read."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakeingest.topic_names import TopicNames

NAMES = {
    "public.orders": "w.public.orders",
    "public.Order Items": "w.public.Order_Items",
    "public.prix$": "w.public.prix_",
    "public.größe": "w.public.gr__e",
    "public.a-b.c": "w.public.a-b.c",
    # Java takes what is outside the basic plane for two characters.
    "public.\N{GRINNING FACE}": "w.public.__",
    "public." + 300 * "x": "w.public." + 240 * "x",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_topic_is_named_by_debeziums_rule(name: str) -> None:
    assert TopicNames("w").topic(name) == NAMES[name]


def test_spark_names_topics_by_the_same_rule(spark: SparkSession) -> None:
    names = spark.createDataFrame([(name,) for name in NAMES], "name STRING")
    topics = names.select("name", TopicNames("w").topic_column(F.col("name")).alias("topic"))
    assert {row["name"]: row["topic"] for row in topics.collect()} == NAMES


@pytest.mark.parametrize(
    "names",
    [
        TopicNames("w", listed=("w.public.Order_Items", "w.public.prix_")),
        TopicNames("w", pattern=r"w\.public\.(Order|prix)_.*"),
    ],
)
def test_a_table_is_read_where_its_topic_is(spark: SparkSession, names: TopicNames) -> None:
    read = {"public.Order Items", "public.prix$"}
    assert {name for name in NAMES if names.reads(name)} == read
    frame = spark.createDataFrame([(name,) for name in NAMES], "name STRING")
    condition = names.reads_column(F.col("name"))
    assert condition is not None
    assert {row["name"] for row in frame.where(condition).collect()} == read


def test_without_a_list_or_a_pattern_every_table_is_read() -> None:
    assert TopicNames("w").reads("public.Order Items")
    assert TopicNames("w").reads_column(F.lit("x")) is None


def test_topics_without_known_tables_are_found_by_the_tables_topics() -> None:
    topics = ["w.public.Order_Items", "w.public.orders"]
    assert TopicNames("w").without(topics, ["public.Order Items"]) == ["w.public.orders"]
