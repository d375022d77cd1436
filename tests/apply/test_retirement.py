"""What the publication that retires a table, and every one after it, says of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakeingest.apply.adoption.adopt import adopted_collections
from lakeingest.apply.as_published import as_published, refuse_other_tables
from lakeingest.apply.choice.retirement import rows_since, waiting, with_table, without_table
from lakeingest.apply.lake import LakeState
from lakeingest.commit_note import token
from lakeingest.config import load_config
from lakeingest.errors import FencedError, UnavailableError, UsageError
from lakeingest.ledger.publication import (
    CLAIM,
    PUBLICATION,
    RELEASE,
    Frontier,
    Publication,
    Retired,
)
from lakeingest.position.epochs import Epoch
from lakeingest.source.contract import Source, TopicPartition, Watermarks
from lakeingest.source.topics import select_topics
from lakeingest.topic_names import TopicNames
from tests.apply.published import publication_of
from tests.config.settings import HUDI, RECORDED

NAMES = TopicNames("shop")
TOPIC = "shop.public.orders"
OTHERS = {"shop.public.lines": {0: 7}, "shop.transaction": {0: 9}}
HEAD = Publication(
    batch=4,
    token=token(2, 4),
    writer=2,
    run="run",
    tables={"public.orders": 3, "public.lines": 8},
    paths={"public.orders": "o", "public.lines": "l"},
    transactions=12,
    events=30,
    frontier=Frontier(end_offset=8, offsets={TOPIC: {0: 5, 1: 6}, **OTHERS}, streaming=True),
    schemas={"public.orders": "id BIGINT"},
)
TWINS = replace(HEAD, tables={"public.a b": 1, "public.a_b": 1})
GONE = Retired(batch=5, version=3, topic=TOPIC, offsets={0: 5, 1: 6}, path="o")


def retired(head: Publication = HEAD) -> Publication:
    return without_table(head, "public.orders", NAMES, "retire")


def test_from_its_publication_on_a_table_and_its_topic_are_gone_and_all_else_is_as_it_was() -> None:
    after = retired()
    assert (after.batch, after.token, after.run) == (5, token(2, 5), "retire")
    assert after.tables == {"public.lines": 8}
    assert after.paths == {"public.lines": "l"}
    assert after.frontier == replace(HEAD.frontier, offsets=OTHERS)
    assert after.retired == {"public.orders": GONE}
    assert (after.transactions, after.events, after.opened, after.schemas) == (0, 0, (), {})


@pytest.mark.parametrize("kind", [PUBLICATION, CLAIM, RELEASE])
def test_every_entry_of_the_ledger_repeats_what_is_retired(kind: str) -> None:
    assert publication_of(retired().to_json("shop", kind)).retired == {"public.orders": GONE}


def test_an_entry_of_an_older_version_has_nothing_retired() -> None:
    text = HEAD.to_json("shop", PUBLICATION)
    assert '"retired": {}' in text
    assert publication_of(text.replace(', "retired": {}', "")).retired == {}


def test_taken_up_again_its_topic_is_read_from_where_it_was_left() -> None:
    waits = with_table(retired(), "public.orders", "again", shown=False, path="o")
    assert (waits.batch, waits.retired, waits.frontier) == (6, {}, HEAD.frontier)
    assert waits.tables == {"public.lines": 8}
    shown = with_table(retired(), "public.orders", "again", shown=True, path="o")
    assert (shown.tables, shown.paths) == (HEAD.tables, HEAD.paths)


WAITS = with_table(retired(), "public.orders", "again", shown=False, path="public.orders")
"""The ledger names the folder, though it is the table's own name: the table exists."""


def test_a_table_that_was_loaded_anew_goes_on_in_its_folder_before_it_is_shown_again() -> None:
    loaded = replace(HEAD, paths={"public.orders": "o__load_3", "public.lines": "l"})
    assert loaded.loads == {"public.orders": 3}
    waits = with_table(retired(loaded), "public.orders", "again", shown=False, path="o__load_3")
    assert waits.loads == loaded.loads
    assert waits.shown_paths == {"public.lines": "l"}


@pytest.mark.parametrize(
    ("head", "name", "why"),
    [
        (HEAD, "public.order", "no table 'public.order' is published; did you mean public.orders"),
        (retired(), "public.orders", "retired already, since batch 5"),
        (retired(), "public.lines", "the lake's only table"),
        (TWINS, "public.a b", "'shop.public.a_b' holds the rows of public.a_b, too"),
        (WAITS, "public.orders", "taken up again, and no publication shows it yet: run"),
    ],
)
def test_what_cannot_be_retired_is_refused(head: Publication, name: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        without_table(head, name, NAMES, "run")


def test_what_cannot_be_taken_up_again_is_refused() -> None:
    unknown = "no table 'public.lines' is retired; did you mean public.orders"
    with pytest.raises(UsageError, match=unknown):
        with_table(retired(), "public.lines", "run", shown=True, path="l")
    anew = replace(retired(), frontier=replace(retired().frontier, epochs=(Epoch(1, ""),)))
    with pytest.raises(UsageError, match="started over after the rows of table 'public.orders'"):
        with_table(anew, "public.orders", "run", shown=True, path="public.orders")


def test_a_table_that_is_retired_before_the_snapshot_of_an_epoch_has_no_rows_of_it() -> None:
    opened = replace(HEAD.frontier, epochs=(Epoch(1, ""),), streaming=False)
    left = without_table(replace(HEAD, frontier=opened), "public.orders", NAMES, "run")
    with pytest.raises(UsageError, match="started over after the rows of table 'public.orders'"):
        with_table(left, "public.orders", "run", shown=True, path="public.orders")
    read = replace(opened, streaming=True)
    left = without_table(replace(HEAD, frontier=read), "public.orders", NAMES, "run")
    again = with_table(left, "public.orders", "run", shown=True, path="public.orders")
    assert "public.orders" in again.tables


def test_a_run_does_not_select_its_topic_nor_count_its_rows(spark: SparkSession) -> None:
    config = load_config(RECORDED)
    names = as_published(config, retired()).source.names
    assert not names.reads("public.orders")
    assert names.reads("public.lines")
    tables = spark.createDataFrame([("public.orders",), ("public.lines",)], "name STRING")
    counted = names.reads_column(F.col("name"))
    assert counted is not None
    assert [row["name"] for row in tables.where(counted).collect()] == ["public.lines"]
    assert as_published(config, HEAD) is config


@pytest.mark.parametrize(
    "names",
    [
        TopicNames("shop", retired=(TOPIC,)),
        TopicNames("shop", listed=(TOPIC, "shop.public.lines"), retired=(TOPIC,)),
        TopicNames("shop", pattern=r"shop\.public\..*", retired=(TOPIC,)),
    ],
)
def test_its_topic_may_stay_among_those_that_are_chosen_and_may_be_gone(names: TopicNames) -> None:
    for existing in ({TOPIC, "shop.public.lines"}, {"shop.public.lines"}):
        assert select_topics(existing, names, None, "here") == ("shop.public.lines",)


def test_a_run_whose_tables_are_not_those_it_began_with_stops() -> None:
    config = load_config(RECORDED)
    refuse_other_tables(HEAD, config)
    refuse_other_tables(retired(), as_published(config, retired()))
    with pytest.raises(FencedError, match="run again"):
        refuse_other_tables(retired(), config)
    with pytest.raises(FencedError, match="run again"):
        refuse_other_tables(HEAD, as_published(config, retired()))


def test_a_retired_table_that_was_adopted_still_tells_up_to_where_its_writer_was() -> None:
    head = without_table(HEAD, "public.orders", NAMES, "run", adopted_at="0041")
    assert LakeState(head, {}).adopted_at == "0041"


def test_a_retired_table_is_not_looked_at_to_be_adopted() -> None:
    config = load_config({**HUDI, "lakeingest.table.public.orders.adopt": "hudi-streamer"})
    assert adopted_collections(config) == ["public.orders"]
    assert adopted_collections(as_published(config, retired())) == []


@dataclass
class Topics:
    """A source that is asked for watermarks alone."""

    marks: Mapping[str, Mapping[int, Watermarks]] = field(default_factory=dict)

    def watermarks(self, topics: Sequence[str]) -> Mapping[TopicPartition, Watermarks]:
        (topic,) = topics
        if topic not in self.marks:
            raise UnavailableError(topic)
        return {TopicPartition(topic, number): m for number, m in self.marks[topic].items()}


@pytest.mark.parametrize(
    ("marks", "count"),
    [
        ({0: Watermarks(0, 5), 1: Watermarks(6, 6)}, 0),
        ({0: Watermarks(0, 6), 1: Watermarks(2, 8)}, 3),
        # Retention removed what was never read, and some of what came since.
        ({0: Watermarks(9, 10), 1: Watermarks(0, 6)}, 5),
        # The topic was made anew, with one more partition.
        ({0: Watermarks(0, 2), 1: Watermarks(0, 0), 2: Watermarks(0, 1)}, 3),
    ],
)
def test_what_arrived_since_is_counted(marks: dict[int, Watermarks], count: int) -> None:
    places = {TopicPartition(TOPIC, number): watermarks for number, watermarks in marks.items()}
    assert waiting(GONE, places) == count


def warnings_of(topics: Topics, gone: Mapping[str, Retired]) -> list[str]:
    return rows_since(cast(Source, cast(Any, topics)), gone)


def test_records_that_nobody_reads_are_told_of_and_a_topic_that_is_gone_is_not() -> None:
    (warning,) = warnings_of(Topics({TOPIC: {0: Watermarks(0, 9)}}), {"public.orders": GONE})
    assert "'public.orders' is retired since batch 5; " in warning
    assert "not read: 4." in warning
    assert warnings_of(Topics(), {"public.orders": GONE}) == []
    assert warnings_of(Topics({TOPIC: {0: Watermarks(0, 5)}}), {"public.orders": GONE}) == []
