"""Records of another connector than the configured one are refused before anything is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.inspect.validate import validate_pipeline
from lakeingest.apply.run import run_pipeline
from lakeingest.config import load_config
from lakeingest.errors import ConfigError
from tests.forms import further
from tests.logs.written import WrittenLog, change
from tests.reader.small_lake import SmallLake

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("connector", ["mysql", further("oracle")])
def test_a_wrong_connector_is_named_and_nothing_is_written(
    spark: SparkSession, small_lake: SmallLake, lake: Path, connector: str
) -> None:
    other = {"lakeingest.source.connector": connector, "lakeingest.target.path": str(lake)}
    config = load_config({**small_lake.settings, **other})
    message = rf"connector for postgresql, and lakeingest\.source\.connector says {connector}"
    with pytest.raises(ConfigError, match=message):
        run_pipeline(spark, config)
    with pytest.raises(ConfigError, match=message):
        validate_pipeline(spark, config)
    assert not lake.exists()


@pytest.mark.soak
@pytest.mark.parametrize("name", ["postgresql", "a-fork-of-it", None])
def test_the_right_connector_and_unknown_names_are_read(
    spark: SparkSession, log: WrittenLog, lake: Path, name: str | None
) -> None:
    sent = change("a", 100)
    named = {**sent.source, **({"connector": name} if name else {})}
    log.transaction("1:100", type(sent)(sent.collection, sent.id, sent.v, named, sent.op))
    assert log.ingest(spark, lake).transactions == 1
