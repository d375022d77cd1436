"""Tables whose names a topic cannot hold, from log to lake: Debezium rewrites them in the topic."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.batch import writer
from lakeingest.errors import ConfigError, DataError
from lakeingest.reader import open_lake
from tests.apply.crash import crashing_at
from tests.apply.published import history, tables
from tests.forms import further
from tests.logs.written import PREFIX, Sent, WrittenLog, place_of, topic_of

pytestmark = pytest.mark.slow

TWINS = ("public.a b", "public.a_b")
TABLES = ("public.Order Items", "public.größe$", *TWINS)
TOPICS = ",".join(sorted({topic_of(name) for name in TABLES}))


def sent(collection: str, lsn: int, id_: int, v: int | None, before: int) -> Sent:
    place = place_of(collection, lsn, before)
    return Sent(collection, id_, v, place, "c" if v is not None else "d")


def log_of(folder: Path, *tables: str, lacks: str | None = None) -> WrittenLog:
    """Write two transactions of a row per table, and a third that lacks the row of ``lacks``."""
    log = WrittenLog(folder, "postgresql")
    for number, lacking in ((1, None), (2, None), *([(3, lacks)] if lacks else [])):
        begin, end = 1000 * number, 1000 * number + 100
        rows = [sent(t, begin + n, number, 10 * number, begin) for n, t in enumerate(tables)]
        log.begin(f"{number}:{begin}")
        log.rows(f"{number}:{begin}", [row for row in rows if row.collection != lacking])
        log.end(f"{number}:{end}", dict.fromkeys(tables, 1))
    return log


@pytest.mark.parametrize("settings", [further({}), further({"source_topics": TOPICS})])
def test_tables_of_rewritten_names_or_one_topic_are_published_whole_by_the_run_behind_a_killed_one(
    spark: SparkSession, tmp_path: Path, lake: Path, settings: dict[str, str]
) -> None:
    """A table that is ahead of the plan is waited for, however small the batches are now."""
    log = log_of(tmp_path / "log", *TABLES, lacks="public.Order Items")
    with crashing_at("3.after-first-commit", writer):
        log.ingest(spark, lake, **settings)
    with pytest.raises(DataError, match=r"1 rows of table 'public.Order Items', 0 are there"):
        log.ingest(spark, lake, commit_max_transactions="1", **settings)
    assert [*history(spark, lake).values()] == [dict.fromkeys(TABLES, {1: 10, 2: 20})]


@pytest.mark.soak
@pytest.mark.parametrize("mode", ["metadata", "none"])
def test_two_tables_on_one_listed_topic_are_told_apart(
    spark: SparkSession, tmp_path: Path, lake: Path, mode: str
) -> None:
    log = log_of(tmp_path / "log", *TWINS)
    log.ingest(spark, lake, source_topics=topic_of(TWINS[1]), transaction_mode=mode)
    assert open_lake(spark, str(lake)).tables() == list(TWINS)
    assert tables(spark, lake) == dict.fromkeys(TWINS, {1: 10, 2: 20})


def test_rows_on_a_topic_that_is_not_their_tables_are_refused_where_topics_are_listed(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = log_of(tmp_path / "log", "public.orders")
    log.rename(topic_of("public.orders"), f"{PREFIX}.routed")
    with pytest.raises(ConfigError, match=r"'w\.routed' holds rows of table 'public\.orders'"):
        log.ingest(spark, tmp_path / "lake", source_topics=f"{PREFIX}.routed")
    assert not (tmp_path / "lake").exists()
