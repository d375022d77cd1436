"""A topic that was deleted and made again between two runs: its id in the progress tells."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.run import run_pipeline
from lakeingest.errors import DataError
from lakeingest.source import KafkaSource
from lakeingest.topic_names import TopicNames
from tests.apply.written import WrittenLog, change, table
from tests.rig.kafka import KafkaBroker
from tests.rig.replay import replay

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


@pytest.mark.soak
def test_a_run_stops_at_a_topic_made_again_that_has_grown_past_what_was_read(
    spark: SparkSession, broker: KafkaBroker, tmp_path: Path
) -> None:
    log, lake = WrittenLog(tmp_path / "log", "postgresql"), tmp_path / "lake"
    log.transaction("1:100", change("a", 100))
    config = log.configured(lake)
    replay(log.folder, broker.bootstrap)
    client = {"bootstrap.servers": broker.bootstrap}
    source = KafkaSource(spark, client, TopicNames("w"), transaction_topic="w.transaction")
    assert run_pipeline(spark, config, source=source).transactions == 1
    assert run_pipeline(spark, config, source=source).batches == 0
    again = WrittenLog(tmp_path / "again", "postgresql")
    again.rows("2:300", [change("a", 200), change("a", 300)])
    again.configured(lake)
    broker.delete_topic("w.public.a")
    replay(again.folder, broker.bootstrap)
    with pytest.raises(DataError, match=r"id of topic 'w\.public\.a' is another one than when"):
        run_pipeline(spark, config, source=source)
    assert table(spark, lake, "public.a") == {1: 100}
