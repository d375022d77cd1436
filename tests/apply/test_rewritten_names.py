"""Tables whose names a topic cannot hold, from log to lake: Debezium rewrites them in the topic."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.batch import writer
from lakeingest.errors import ConfigError, DataError
from lakeingest.reader import open_lake
from tests.apply.crash import crashing_at
from tests.apply.published import table
from tests.apply.written import PREFIX, Sent, WrittenLog, topic_of
from tests.forms import further

pytestmark = pytest.mark.slow

TABLES = ("public.Order Items", "public.größe$")
TOPICS = ",".join(topic_of(name) for name in TABLES)


def sent(collection: str, lsn: int, id_: int, v: int | None, before: int) -> Sent:
    schema, _, name = collection.partition(".")
    place = {"schema": schema, "table": name, "sequence": f'["{before}","{lsn}"]', "lsn": lsn}
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


@pytest.mark.parametrize("settings", [{}, further({"source_topics": TOPICS})])
def test_tables_with_rewritten_names_are_published_whole_also_by_the_run_behind_a_killed_one(
    spark: SparkSession, tmp_path: Path, settings: dict[str, str]
) -> None:
    """A table that is ahead of the plan is waited for, however small the batches are now."""
    lake = tmp_path / "lake"
    log = log_of(tmp_path / "log", *TABLES, lacks="public.Order Items")
    with crashing_at("3.after-first-commit", writer):
        log.ingest(spark, lake, **settings)
    with pytest.raises(DataError, match=r"1 rows of table 'public.Order Items', 0 are there"):
        log.ingest(spark, lake, commit_max_transactions="1", **settings)
    (_,) = open_lake(spark, str(lake)).snapshots()
    rows = {1: 10, 2: 20}
    assert {name: table(spark, lake, name) for name in TABLES} == dict.fromkeys(TABLES, rows)


@pytest.mark.parametrize("mode", ["metadata", further("none")])
def test_two_tables_on_one_topic_are_told_apart(
    spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    lake = tmp_path / "lake"
    both = ("public.a b", "public.a_b")
    log = log_of(tmp_path / "log", *both)
    log.ingest(spark, lake, source_topics=topic_of("public.a_b"), transaction_mode=mode)
    assert open_lake(spark, str(lake)).tables() == list(both)
    assert {name: table(spark, lake, name) for name in both} == dict.fromkeys(both, {1: 10, 2: 20})


def test_settings_under_the_name_of_the_topic_are_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = log_of(tmp_path / "log", "public.Order Items")
    log.declared = False
    with pytest.raises(ConfigError, match=r"write lakeingest\.table\.public\.Order\\ Items\.\*"):
        log.ingest(spark, tmp_path / "lake", **{"table.public.Order_Items.key": "id"})
    assert not (tmp_path / "lake").exists()


def test_rows_on_a_topic_that_is_not_their_tables_are_refused_where_topics_are_listed(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = log_of(tmp_path / "log", "public.orders")
    log.rename(topic_of("public.orders"), f"{PREFIX}.routed")
    with pytest.raises(ConfigError, match=r"'w\.routed' holds rows of table 'public\.orders'"):
        log.ingest(spark, tmp_path / "lake", source_topics=f"{PREFIX}.routed")
