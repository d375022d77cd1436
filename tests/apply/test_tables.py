"""When the next batch can be prepared while this one is written: its tables' looks are known."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.tables import TableBook
from lakeingest.config import load_config
from lakeingest.decode.columns import Encodings, declared
from lakeingest.folders import LakeFolders
from lakeingest.plan.spec import PipelineSpec, TableSpec
from lakeingest.sink.hudi import HudiSink
from lakeingest.sink.hudi_options import HudiSettings
from tests.sink.lake import COLLECTION, NAMES, PIPELINE, Lake, insert

SPEC = PipelineSpec("postgresql", Encodings())


@pytest.mark.slow
def test_a_table_that_keeps_wider_types_than_its_source_is_foreseen(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Hudi makes INT of SMALLINT; a wider or a new column, by contrast, changes the table."""

    def sink(**_: object) -> HudiSink:
        return HudiSink(
            spark,
            LakeFolders(str(tmp_path / "lake")),
            PIPELINE,
            NAMES,
            hard=False,
            null_missing=False,
            settings=HudiSettings(),
        )

    lake = Lake(spark, sink, {})
    state = lake.apply(insert(1, 1, small=3), ddl="id BIGINT, small SMALLINT")
    config = load_config(
        {
            "lakeingest.pipeline.name": PIPELINE,
            "lakeingest.source.kind": "recorded",
            "lakeingest.source.path": str(tmp_path),
            "lakeingest.source.connector": "postgresql",
            "lakeingest.source.topic.prefix": "shop",
            "lakeingest.target.path": str(tmp_path / "lake"),
        }
    )
    book = TableBook(spark, config, SPEC, lake.sink, lambda _: None)

    def foreseen(ddl: str) -> bool:
        columns = declared(spark.createDataFrame([], ddl).schema, SPEC.encodings)
        return book.foreseen(TableSpec(COLLECTION, tuple(columns), ("id",)), state)

    assert foreseen("id BIGINT, small SMALLINT")
    assert not foreseen("id BIGINT, small BIGINT")
    assert not foreseen("id BIGINT, small SMALLINT, more SMALLINT")
