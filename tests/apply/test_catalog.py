"""What is known of a table before it is written, and what is said of it then."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from lakeingest.apply.batch_stats import BatchStats
from lakeingest.apply.table.catalog import TableBook
from lakeingest.config import load_config
from lakeingest.config.model import PipelineConfig
from lakeingest.decode.columns import declared_columns
from lakeingest.decode.encodings import Encodings
from lakeingest.decode.json.format import CarriedSchema, JsonFormat
from lakeingest.errors import ConfigError
from lakeingest.frame_schemas import MetadataColumns
from lakeingest.plan.spec import PipelineSpec, TableSpec
from lakeingest.sink.contract import TableState
from lakeingest.sink.hudi.options import HudiSettings
from lakeingest.sink.hudi.sink import HudiSink
from lakeingest.source.contract import TopicPartition
from tests.config.settings import recorded
from tests.law.ingest import delta_sink
from tests.notes import commit_note
from tests.sink.lake import COLLECTION, PIPELINE, Lake, insert, sink_settings

SPEC = PipelineSpec("postgresql", Encodings())


def config(folder: Path, **of_table: str) -> PipelineConfig:
    return load_config(
        {
            **recorded(folder, folder / "lake"),
            **{f"lakeingest.table.{COLLECTION}.{key}": value for key, value in of_table.items()},
            "lakeingest.pipeline.name": PIPELINE,
        }
    )


def test_a_run_is_warned_of_nulls_that_a_converter_may_have_replaced(
    spark: SparkSession, tmp_path: Path
) -> None:
    columns = declared_columns(spark.createDataFrame([], "id BIGINT, k INT").schema, SPEC.encodings)
    may_be_replaced = (columns[0], replace(columns[1], nullable=True, default="5"))
    met, other = CarriedSchema(0, may_be_replaced), CarriedSchema(0, columns)
    warnings: list[str] = []
    spec = replace(SPEC, format=JsonFormat({b"met": met, b"other": other}))
    sink = delta_sink(spark, tmp_path, hard=False, null_missing=False)
    book = TableBook(spark, config(tmp_path), spec, sink, warnings.append)
    place = TopicPartition("shop.public.docs", 0)
    stats = BatchStats(1, place, COLLECTION, 1, 0, "", "", "", sample_key=b'{"id":1}')
    for tag in (b"other", b"met"):
        tagged = replace(stats, value_tags=frozenset({tag}))
        book.spec(COLLECTION, [tagged], spark.createDataFrame([], "id BIGINT"), None)
        if tag == b"other":
            assert warnings == []
    (warning,) = warnings
    assert warning.startswith(f"Table '{COLLECTION}': k may be NULL and have a default.")


def test_a_table_with_its_metadata_under_another_prefix_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    """None of its rows would have a position, and each would become a row of NULLs."""
    rows = SimpleNamespace(schema=StructType().add("id", "long").add("_position", "string"))
    sink: Any = SimpleNamespace(read=lambda *_: rows)
    state = TableState(1, commit_note(COLLECTION, run="r", token=1, end_offset=0))
    for prefix, refused in (("_", nullcontext()), ("li_", pytest.raises(ConfigError, match="li_"))):
        spec = replace(SPEC, names=MetadataColumns(prefix))
        book = TableBook(spark, config(tmp_path), spec, sink, lambda _: None)
        with refused:
            book.refuse_other_declarations({COLLECTION: state})


@pytest.mark.slow
def test_a_table_that_keeps_wider_types_than_its_source_is_foreseen(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Hudi makes INT of SMALLINT; a wider or a new column, by contrast, changes the table."""

    def sink(**_: object) -> HudiSink:
        return HudiSink(spark, sink_settings(str(tmp_path / "lake")), HudiSettings())

    lake = Lake(spark, sink, {})
    state = lake.apply(insert(1, 1, small=3), ddl="id BIGINT, small SMALLINT")
    book = TableBook(spark, config(tmp_path), SPEC, lake.sink, lambda _: None)

    def foreseen(ddl: str) -> bool:
        columns = declared_columns(spark.createDataFrame([], ddl).schema, SPEC.encodings)
        return book.foreseen(TableSpec(COLLECTION, tuple(columns), ("id",)), state)

    assert foreseen("id BIGINT, small SMALLINT")
    assert not foreseen("id BIGINT, small BIGINT")
    assert not foreseen("id BIGINT, small SMALLINT, more SMALLINT")


def test_a_key_keeps_the_order_of_columns_that_its_table_was_made_with(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Hudi's record key is made in this order: in another one every row would be there twice."""
    sink = delta_sink(spark, tmp_path, hard=False, null_missing=False)
    lake = Lake(spark, lambda **_: sink, {})
    ddl = "id BIGINT, n INT"
    made = replace(lake.changeset(insert(1, 1, n=1), ddl=ddl), key=("id", "n"))
    state = sink.apply(made, lake.note(1), None)
    book = TableBook(spark, config(tmp_path, key="n, id", schema=ddl), SPEC, sink, lambda _: None)
    place = TopicPartition("shop.public.docs", 0)
    stats = BatchStats(1, place, COLLECTION, 1, 0, "", "", "", sample_key=b'{"id":1,"n":1}')
    changes = spark.createDataFrame([], ddl)
    assert book.spec(COLLECTION, [stats], changes, None).key == ("n", "id")
    assert book.spec(COLLECTION, [stats], changes, state).key == ("id", "n")
