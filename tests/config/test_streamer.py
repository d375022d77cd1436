"""A command line of Hudi's streamer becomes a pipeline, or says what it cannot become."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path

import pytest

from lakeingest.cli.streamer_arguments import read_arguments
from lakeingest.config import PipelineConfig
from lakeingest.config.streamer.command_line import CommandLine, streamer_config
from lakeingest.config.streamer.options import OPTIONS
from lakeingest.errors import UsageError
from tests.config.settings import problem_of

# In the style of Hudi's own example for Debezium and PostgreSQL.
COMMAND = """
  --table-type COPY_ON_WRITE --op UPSERT
  --target-base-path s3://bucket/hudi/orders
  --target-table orders --continuous
  --min-sync-interval-seconds 60
  --source-class org.apache.hudi.utilities.sources.debezium.PostgresDebeziumSource
  --source-ordering-field _event_lsn
  --payload-class org.apache.hudi.common.model.debezium.PostgresDebeziumAvroPayload
  --hoodie-conf schema.registry.url=https://registry:8081
  --hoodie-conf hoodie.deltastreamer.schemaprovider.registry.url=\
https://registry:8081/subjects/postgres.shop.orders-value/versions/latest
  --hoodie-conf hoodie.deltastreamer.source.kafka.value.deserializer.class=\
io.confluent.kafka.serializers.KafkaAvroDeserializer
  --hoodie-conf hoodie.deltastreamer.source.kafka.topic=postgres.shop.orders
  --hoodie-conf bootstrap.servers=broker:9092
  --hoodie-conf auto.offset.reset=earliest
  --hoodie-conf group.id=hudi
  --hoodie-conf hoodie.datasource.write.recordkey.field=id
  --hoodie-conf hoodie.datasource.write.partitionpath.field=
  --hoodie-conf hoodie.datasource.write.keygenerator.class=\
org.apache.hudi.keygen.NonpartitionedKeyGenerator
"""


def typed(command: str) -> CommandLine:
    return read_arguments("hoodie-streamer", "", OPTIONS, shlex.split(command))[0]


def pipeline(more: str = "") -> PipelineConfig:
    return streamer_config(typed(f"{COMMAND} {more}"))


problem = partial(problem_of, pipeline)


def test_the_example_of_the_documentation_is_a_whole_pipeline_without_a_warning() -> None:
    config = pipeline()
    assert (config.warnings, config.name) == ((), "orders")
    assert (config.source.connector, config.source.format) == ("postgresql", "avro")
    assert config.source.topics == ("postgres.shop.orders",)
    assert config.source.transaction_topic == "postgres.transaction"
    assert config.table("shop.orders").key == ("id",)
    assert config.format_of("shop.orders") == "hudi"
    assert config.target.hudi_table_type == "COPY_ON_WRITE"
    url = config.source.registry_options["schema.registry.url"]
    assert url.get_secret_value() == "https://registry:8081"


def test_the_table_lies_at_its_base_path_and_the_ledger_below_it() -> None:
    config = pipeline()
    assert config.folders.table("shop.orders") == "s3://bucket/hudi/orders"
    assert config.folders.ledger == "s3://bucket/hudi/orders/_lakeingest/ledger"


def test_an_option_counts_more_than_a_setting_and_a_setting_more_than_the_file(
    tmp_path: Path,
) -> None:
    (tmp_path / "base.properties").write_text("isolation.level=read_uncommitted\nclient.id=a\n")
    file = tmp_path / "orders.properties"
    file.write_text(
        "include=base.properties\n"
        "isolation.level=read_committed\n"
        "hoodie.table.name=other\n"
        "hoodie.deltastreamer.kafka.source.maxEvents=3\n"
        "hoodie.datasource.write.recordkey.field=other\n"
    )
    config = pipeline(f"--props file://{file} --source-limit 7")
    assert (config.name, config.batch_max_events) == ("orders", 7)
    assert config.table("shop.orders").key == ("id",)
    assert config.source.kafka_client_options()["client.id"] == "a"
    assert config.warnings == ()


def test_a_file_that_is_elsewhere_or_includes_itself_is_refused(tmp_path: Path) -> None:
    assert "copy it here" in problem("--props s3://bucket/orders.properties")
    file = tmp_path / "orders.properties"
    file.write_text("include=orders.properties\n")
    assert "includes itself" in problem(f"--props {file}")


def test_what_has_no_effect_is_one_warning_for_each_reason() -> None:
    config = pipeline(
        "--enable-sync --sync-tool-classes X --max-pending-compactions 3 --filter-dupes "
        "--schemaprovider-class org.apache.hudi.utilities.schema.SchemaRegistryProvider"
    )
    assert [said.partition("(")[0].strip() for said in config.warnings] == [
        "without effect here: --enable-sync, --sync-tool-classes",
        "without effect here: --max-pending-compactions",
        "without effect here: --filter-dupes",
    ]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("--op BULK_INSERT", "--op: only UPSERT"),
        ("--transformer-class x.SqlQueryBasedTransformer", "--transformer-class: rows are not"),
        ("--payload-class x.PartialUpdateAvroPayload", "--payload-class: rows are not merged"),
        ("--merge-mode CUSTOM", "--merge-mode: only EVENT_TIME_ORDERING"),
        ("--merge-impl-classes x.Y", "--merge-impl-classes: rows are not merged"),
        ("--source-class x.JsonKafkaSource", "--source-class: only PostgresDebeziumSource"),
        ("--table-type FLAT", "--table-type=FLAT: should be 'COPY_ON_WRITE'"),
        ("--base-file-format HFILE", "--base-file-format: only PARQUET"),
        ("--run-bootstrap", "--run-bootstrap: a table is loaded"),
        ("--post-write-termination-strategy-class X", "run without --continuous"),
        (
            "--checkpoint postgres.shop.orders,0:5",
            "lakeingest.table.shop.orders.adopt=hudi-streamer",
        ),
        ("--checkpoint 20260101", "topic,0:10,1:20"),
        ("--hoodie-conf auto.offset.reset=latest", "auto.offset.reset can only be earliest"),
        (
            "--hoodie-conf hoodie.datasource.write.partitionpath.field=placed_at:TIMESTAMP",
            "hoodie.datasource.write.partitionpath.field: names of columns",
        ),
        (
            "--hoodie-conf hoodie.streamer.source.kafka.value.deserializer.class=x.Protobuf",
            "remove it and set lakeingest.source.format",
        ),
    ],
)
def test_what_would_give_another_table_is_refused_by_the_name_that_was_typed(
    more: str, said: str
) -> None:
    assert said in problem(more)


def test_all_that_is_wrong_is_said_at_once() -> None:
    assert "3 problems" in problem("--op INSERT --run-bootstrap --checkpoint nonsense")
    said = problem("--table-type MOR --op INSERT")
    assert "2 problems" in said
    assert "--table-type=MOR: should be 'COPY_ON_WRITE' or 'MERGE_ON_READ'" in said


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("--merge-mode COMMIT_TIME_ORDERING", "--merge-mode is not followed"),
        ("--payload-class x.OverwriteWithLatestAvroPayload", "--payload-class is not followed"),
        ("--source-ordering-field updated_at", "--source-ordering-field"),
    ],
)
def test_what_keeps_the_newest_row_by_another_order_is_a_warning(more: str, said: str) -> None:
    (warning,) = pipeline(more).warnings
    assert said in warning


def test_the_format_of_the_events_is_that_of_the_deserialiser() -> None:
    text = (
        "--hoodie-conf hoodie.deltastreamer.source.kafka.value.deserializer.class="
        "org.apache.kafka.common.serialization.StringDeserializer"
    )
    config = pipeline(text)
    assert config.source.format == "json"
    (warning,) = config.warnings
    assert "without effect on a source in JSON" in warning


def test_the_same_table_may_be_kept_as_delta() -> None:
    assert pipeline("--hoodie-conf lakeingest.target.format=delta").formats() == {"delta"}


def test_a_missing_option_is_named() -> None:
    with pytest.raises(UsageError, match="missing: --target-base-path, --table-type"):
        streamer_config(typed("--target-table orders"))


def test_a_checkpoint_is_that_of_the_table_which_is_adopted() -> None:
    adopt = "--hoodie-conf lakeingest.table.shop.orders.adopt=hudi-streamer"
    config = pipeline(f"{adopt} --checkpoint postgres.shop.orders,0:5")
    assert config.table("shop.orders").checkpoint == "postgres.shop.orders,0:5"
    assert config.deletes_are_hard("hudi")
    assert "_event_lsn" in config.metadata().event


def test_a_file_of_many_tables_is_told_which_command_reads_it() -> None:
    tables = "hoodie.deltastreamer.ingestion.tablesToBeIngested"
    given = f"--hoodie-conf {tables}=shop.orders --hoodie-conf hoodie.metrics.on=true"
    said = [text for text in pipeline(given).warnings if tables in text]
    assert ["hoodie-multi-table-streamer" in text for text in said] == [True]
    topic = "--hoodie-conf hoodie.deltastreamer.source.kafka.topic="
    assert "also without effect here: " + tables in problem(f"{given} {topic}")
