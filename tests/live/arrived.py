"""What lies in a live run's topics, decoded as the pipeline does."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from lakeingest.apply.pipeline_spec import pipeline_spec
from lakeingest.apply.table.record_schemas import open_schemas
from lakeingest.config import load_config
from lakeingest.plan.window import window_changes
from lakeingest.source import open_source
from lakeingest.source.contract import OffsetRange
from tests.live.run import LiveRun
from tests.rig.chain import Chain


def changes_of(spark: SparkSession, run: LiveRun, chain: Chain) -> DataFrame:
    """Return every change in the data topics (``CHANGE``)."""
    config = load_config(run.configuration(chain, Path("unused")))
    with (
        closing(open_source(spark, config.source)) as source,
        closing(open_schemas(spark, config.source)) as schemas,
    ):
        bounds = source.watermarks(source.topics())
        records = source.read(
            [OffsetRange(p.topic, p.partition, w.earliest, w.high) for p, w in bounds.items()]
        )
        schemas.learn(records)
        return window_changes(records, pipeline_spec(config, schemas.format))
