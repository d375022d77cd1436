"""Topics arrive in any order and bit by bit; what is published is a commit of the source."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.run import run_pipeline
from lakeingest.config import load_config
from lakeingest.source import open_source
from lakeingest.source.contract import TopicPartition
from tests.recordings.altered import short_run
from tests.recordings.arriving import Arriving, waiting_for_more
from tests.recordings.check import check_history
from tests.recordings.configure import packaged_run
from tests.recordings.rust import RustLake

pytestmark = [pytest.mark.slow, pytest.mark.soak]


def transactions_last(where: TopicPartition) -> tuple[bool, str, int]:
    return where.topic.endswith(".transaction"), where.topic, where.partition


def transactions_first(where: TopicPartition) -> tuple[bool, str, int]:
    return not where.topic.endswith(".transaction"), where.topic, where.partition


@pytest.mark.parametrize(
    ("order", "end"),
    [(transactions_first, 100), (transactions_first, None), (transactions_last, None)],
)
def test_whichever_topic_arrives_first_every_publication_is_a_commit(
    spark: SparkSession,
    tmp_path: Path,
    order: Callable[[TopicPartition], tuple[bool, str, int]],
    end: int | None,
) -> None:
    """With all tables of the whole run, or with two tables of its beginning."""
    run = short_run(tmp_path / "log", end, "carts", "orders") if end else packaged_run()
    lake = tmp_path / "lake"
    recorded = load_config(run.configuration(lake))
    config = waiting_for_more(recorded)
    source = Arriving(open_source(spark, recorded.source), config.source.transaction_topic)
    waiting = 0
    for _ in source.arrive(sorted(source.ends, key=order), chunk=2000 if end is None else 100):
        waiting += not run_pipeline(spark, config, source=source).batches
    assert waiting > 2  # otherwise nothing was ever held back, and this test shows nothing
    history = check_history(run, RustLake(lake, run.namespace))
    assert history.violations == ()
    assert history.publications > 1
    assert history.last == history.of
