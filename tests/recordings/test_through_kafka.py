"""A recorded run through a real broker gives the same tables in whatever order it comes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.faults.killed import INTERRUPTED
from tests.recordings.configure import packaged_run
from tests.recordings.through_kafka import through_kafka
from tests.rig.kafka import KafkaBroker
from tests.rig.replay import Order

# By hand: the live tests go through a broker, too, and test_arrival has its order of topics.
pytestmark = [pytest.mark.slow, pytest.mark.soak, pytest.mark.kafka]


@pytest.fixture
def fresh_broker(tmp_path: Path) -> Iterator[KafkaBroker]:
    with KafkaBroker(tmp_path / "broker") as broker:
        yield broker


@pytest.mark.parametrize("order", Order)
def test_a_continuous_run_publishes_only_commits_whichever_topic_comes_first(
    spark: SparkSession, fresh_broker: KafkaBroker, tmp_path: Path, order: Order
) -> None:
    passage = through_kafka(spark, packaged_run(), fresh_broker, tmp_path, order)
    assert [table for table in passage.tables if table.differences] == []
    assert (passage.history.violations, passage.history.last) == ((), passage.history.of)
    assert passage.exit_code == INTERRUPTED
