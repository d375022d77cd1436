"""How many jobs a batch asks of Spark: few for each table, however many questions there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.inspect.status import pipeline_status
from lakeingest.apply.run import run_pipeline
from lakeingest.apply.summary import BatchSummary
from lakeingest.config import load_config
from tests.benchmarks.job_book import JobBook
from tests.logs.shop import Shop
from tests.recordings.configure import packaged_run

pytestmark = pytest.mark.alone

TABLES = 2
WINDOW = 6
"""Jobs that read and judge a window, however many batches it has."""


def test_a_plain_batch_asks_two_jobs_for_a_table(shop: Shop) -> None:
    shop.commit(a=30, b=31)
    before = begun(shop.spark)
    summary = shop.run()
    job_count = len(begun(shop.spark) - before)
    assert (len(summary.rows), summary.jobs) == (TABLES, job_count)
    # Only the publication itself is counted with the next batch.
    assert pipeline_status(shop.spark, shop.configured())["jobs_of_last_batch"] == summary.jobs - 1
    assert job_count <= 2 * TABLES + 3 + WINDOW


def begun(spark: SparkSession) -> set[int]:
    """Return the jobs of the session: that ``JobBook`` names a thousand of them takes seconds."""
    context: Any = spark.sparkContext
    # The tracker hears of a job a moment after it began.
    context._jsc.sc().listenerBus().waitUntilEmpty()
    return set(context.statusTracker().getJobIdsForGroup())


@pytest.mark.soak
@pytest.mark.slow
def test_a_batch_with_key_changes_and_toast_asks_four_jobs_for_a_table(
    spark: SparkSession, tmp_path: Path
) -> None:
    book, jobs, most = JobBook(spark), [], []

    def note(summary: BatchSummary) -> None:
        jobs.append(book.ended())
        most.append(4 * len(summary.tables) + 3)

    properties = packaged_run().configuration(tmp_path, batch_max_events="300")
    book.ended()
    with book.naming():
        run_pipeline(spark, load_config(properties), max_batches=7, on_batch=note)
    # The first two batches load the tables, and read and judge the window.
    for batch_jobs, limit in zip(jobs[2:], most[2:], strict=True):
        assert batch_jobs.total() <= limit, batch_jobs
