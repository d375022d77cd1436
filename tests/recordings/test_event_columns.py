"""Tables with RFC-39's columns: each row tells of the event that last decided it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's users know

from lakeingest.apply.run import run_pipeline
from lakeingest.config import load_config
from lakeingest.errors import ConfigError
from lakeingest.reader import open_lake
from tests.envelope.records import recorded
from tests.recordings.configure import RecordedRun, packaged_run
from tests.recordings.flattened import OPERATION, POSTGRESQL, last_words

pytestmark = [pytest.mark.slow, pytest.mark.soak]

TABLES = ("documents", "carts")
"""Snapshot rows, unavailable values, moved keys, deletes, truncates."""


@pytest.fixture(scope="module")
def demo() -> RecordedRun:
    return packaged_run()


def ingest(
    spark: SparkSession,
    run: RecordedRun,
    target: Path,
    settings: Mapping[str, str],
    *,
    tables: Sequence[str] = TABLES,
    max_batches: int | None = None,
) -> None:
    topics = ",".join(f"t1.public.{table}" for table in tables)
    properties = run.configuration(target, source_topics=topics, **settings)
    run_pipeline(spark, load_config(properties), max_batches=max_batches)


def everything(spark: SparkSession, target: Path, table: str) -> DataFrame:
    return open_lake(spark, str(target)).table(f"public.{table}", metadata=True)


def event_columns(frame: DataFrame) -> dict[str, dict[str, object]]:
    """Return RFC-39's columns by key."""
    return {
        json.dumps({"id": row["id"]}, separators=(",", ":")): {
            name: row[name] for name in POSTGRESQL
        }
        for row in frame.select("id", *POSTGRESQL).collect()
    }


@pytest.mark.parametrize(
    ("format_", "batch", "soft", "more"),
    [
        ("delta", "3000", True, {"delta_commit": "public"}),
        # Nearly every update moves its row.
        ("hudi", "3000", False, {"table_public_documents_partition": "n"}),
    ],
    ids=["delta", "hudi"],
)
def test_every_row_tells_of_the_last_event_that_decided_it(
    spark: SparkSession,
    demo: RecordedRun,
    tmp_path: Path,
    format_: str,
    batch: str,
    soft: bool,
    more: dict[str, str],
) -> None:
    settings = {"metadata_columns": "hudi", "batch_max_events": batch, "target_format": format_}
    ingest(spark, demo, tmp_path / "lake", {**settings, **more})
    gone = 0
    for table in TABLES:
        expected = last_words(recorded(demo.events, f"t1.public.{table}"))
        frame = everything(spark, tmp_path / "lake", table)
        lake_words = event_columns(frame)
        assert [key for key, word in lake_words.items() if word not in expected[key]] == []
        assert len(lake_words) == frame.count()
        live = {key for key, words in expected.items() if words[0][OPERATION] != "d"}
        assert live <= set(lake_words)
        gone_here = {key for key in lake_words if lake_words[key][OPERATION] == "d"}
        assert gone_here == set(event_columns(frame.where("_deleted")))
        gone += len(set(lake_words) - live)
    # A reader that comes from Hudi's streamer meets no deleted row.
    assert (gone > 0) == soft
    columns = everything(spark, tmp_path / "lake", "carts").columns
    assert columns == [*POSTGRESQL, "id", "customer_id", "items", *columns[-3:]]
    assert open_lake(spark, str(tmp_path / "lake")).table("public.carts").columns == columns[:-3]


@pytest.mark.parametrize("format_", ["delta", "hudi"])
def test_they_can_be_added_to_a_table_and_then_stay(
    spark: SparkSession, demo: RecordedRun, tmp_path: Path, format_: str
) -> None:
    lake = tmp_path / "lake"
    own = {"target_format": format_, "batch_max_events": "1000"}
    step = partial(ingest, spark, demo, lake, tables=["documents"], max_batches=1)
    step(own)
    old = everything(spark, lake, "documents")
    assert not set(POSTGRESQL) & set(old.columns)
    step({**own, "metadata_columns": "hudi"})
    new = everything(spark, lake, "documents")
    words = event_columns(new.where(F.col(OPERATION).isNotNull()))
    # What did not change since is as it was, and tells nothing.
    untold = new.where(F.col(OPERATION).isNull()).select("id", "_position")
    assert untold.exceptAll(old.select("id", "_position")).isEmpty()
    assert not untold.isEmpty()
    assert words
    with pytest.raises(ConfigError, match="lakeingest.metadata.columns=hudi"):
        step(own)
    with pytest.raises(ConfigError, match="Partitions cannot change in place"):
        step({**own, "metadata_columns": "hudi", "table_public_documents_partition": "n"})
