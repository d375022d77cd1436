"""The files of Hudi's multi-table streamer become one pipeline, or contradict each other."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path

import pytest

from lakeingest.cli.streamer_arguments import read_arguments
from lakeingest.config import PipelineConfig
from lakeingest.config.streamer.tables import MULTI_TABLE_OPTIONS, multi_table_config
from lakeingest.errors import UsageError
from tests.config.settings import problem_of

COMMON = """
hoodie.deltastreamer.ingestion.tablesToBeIngested=shop.orders,shop.carts
hoodie.deltastreamer.ingestion.shop.carts.configFile={folder}/of carts.properties
bootstrap.servers=broker:9092
schema.registry.url=http://u:hunter2@registry:8081
auto.offset.reset=earliest
hoodie.upsert.shuffle.parallelism=4
hoodie.datasource.write.keygenerator.class=org.apache.hudi.keygen.NonpartitionedKeyGenerator
"""
ORDERS = """
hoodie.deltastreamer.source.kafka.topic=postgres.public.orders
hoodie.datasource.write.recordkey.field=id
hoodie.deltastreamer.schemaprovider.registry.url=http://u:hunter2@registry:8081/subjects/o
hoodie.datasource.hive_sync.table=orders
hoodie.table.name=orders
group.id=orders
"""
CARTS = """
hoodie.streamer.source.kafka.topic=postgres.public.carts
hoodie.datasource.write.recordkey.field=customer,no
hoodie.deltastreamer.schemaprovider.registry.url=http://u:hunter2@registry:8081/subjects/c
hoodie.datasource.hive_sync.table=carts
hoodie.streamer.ingestion.targetBasePath=s3://other/carts
hoodie.table.name=carts
group.id=carts
"""
COMMAND = """
  --props {folder}/common.properties --config-folder {folder} --base-path-prefix s3://lake/all/
  --table-type MERGE_ON_READ --op UPSERT
  --source-class org.apache.hudi.utilities.sources.debezium.PostgresDebeziumSource
  --source-ordering-field _event_lsn
  --payload-class org.apache.hudi.common.model.debezium.PostgresDebeziumAvroPayload
"""
TABLE_FILES = ("shop_orders_config.properties", "of carts.properties")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files as the streamer's documentation has them."""
    (tmp_path / "common.properties").write_text(COMMON.format(folder=tmp_path))
    for name, text in zip(TABLE_FILES, (ORDERS, CARTS), strict=True):
        (tmp_path / name).write_text(text)
    return tmp_path


def pipeline(folder: Path, more: str = "") -> PipelineConfig:
    command = f"{COMMAND.format(folder=folder)} {more}"
    typed, _ = read_arguments("", "", MULTI_TABLE_OPTIONS, shlex.split(command))
    return multi_table_config(typed)


problem = partial(problem_of, pipeline)


def add(folder: Path, file: str, line: str) -> None:
    with (folder / file).open("a") as stream:
        stream.write(f"{line}\n")


def test_all_tables_are_one_pipeline_with_one_ledger(folder: Path) -> None:
    config = pipeline(folder)
    assert config.name == "all"
    assert config.source.topics == ("postgres.public.orders", "postgres.public.carts")
    assert config.source.transaction_topic == "postgres.transaction"
    assert (config.source.connector, config.source.format) == ("postgresql", "avro")
    assert config.folders.ledger == "s3://lake/all/_lakeingest/ledger"
    assert config.formats() == {"hudi"}
    assert config.target.hudi_writer_options() == {"hoodie.upsert.shuffle.parallelism": "4"}
    assert config.source.registry_options["schema.registry.url"].get_secret_value() == (
        "http://registry:8081"
    )
    assert [said.partition(": ")[2] for said in config.warnings] == [
        "hoodie.datasource.hive_sync.table"
    ]


def test_each_table_has_the_key_and_the_folder_of_its_own_file(folder: Path) -> None:
    config = pipeline(folder)
    assert config.table("public.orders").key == ("id",)
    assert config.folders.table("public.orders") == "s3://lake/all/shop/orders"
    assert config.table("public.carts").key == ("customer", "no")
    assert config.folders.table("public.carts") == "s3://other/carts"


def test_the_command_line_counts_more_than_the_files_and_a_tables_file_more_than_the_common_one(
    folder: Path,
) -> None:
    add(folder, "common.properties", "hoodie.datasource.write.recordkey.field=common")
    config = pipeline(folder, "--source-limit 7 --target-table shops")
    assert config.table("public.orders").key == ("id",)
    assert (config.batch_max_events, config.name) == (7, "shops")


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("bootstrap.servers=another:9092", "bootstrap.servers"),
        ("sasl.password=hunter2", "sasl.password"),
        ("hoodie.deltastreamer.kafka.source.maxEvents=5", "lakeingest.batch.max.events"),
        ("hoodie.bucket.index.num.buckets=8", "hoodie.bucket.index.num.buckets"),
        ("lakeingest.source.topic.prefix=postgres.public", "lakeingest.source.topic.prefix"),
    ],
)
def test_files_that_differ_in_what_all_tables_share_are_both_named(
    folder: Path, line: str, name: str
) -> None:
    add(folder, TABLE_FILES[1], line)
    said = problem(folder)
    assert f"{name} differs between" in said
    assert all(file in said for file in TABLE_FILES)


def test_what_cannot_be_followed_in_one_file_names_that_file(folder: Path) -> None:
    add(folder, TABLE_FILES[1], "hoodie.datasource.write.partitionpath.field=city:SIMPLE")
    said = problem(folder)
    assert "of carts.properties: hoodie.datasource.write.partitionpath.field" in said
    assert TABLE_FILES[0] not in said


def test_what_cannot_be_followed_anywhere_is_said_once(folder: Path) -> None:
    add(folder, "common.properties", "hoodie.datasource.write.operation=insert")
    add(folder, "common.properties", "hoodie.clean.policy=KEEP_LATEST_FILE_VERSIONS")
    said = problem(folder, "--run-bootstrap")
    assert said.count("--run-bootstrap") == 1
    assert said.count("hoodie.clean.policy can only be") == 1


def test_what_is_misspelt_in_the_common_file_is_said_once_and_not_called_missing(
    folder: Path,
) -> None:
    add(folder, "common.properties", "hoodie.bucket.index.num.bukets=8")
    said = [text for text in pipeline(folder).warnings if "did you mean" in text]
    assert [text.count("num.buckets?") for text in said] == [1]
    common = folder / "common.properties"
    common.write_text(common.read_text().replace("bootstrap.servers", "boostrap.servers"))
    said = problem(folder).splitlines()
    assert said[0].endswith("unknown key boostrap.servers; did you mean bootstrap.servers?")


def test_two_tables_at_one_folder_are_refused(folder: Path) -> None:
    add(folder, TABLE_FILES[1], "hoodie.streamer.ingestion.targetBasePath=s3://lake/all/shop")
    assert "public.carts and public.orders would lie in one folder" in problem(folder)


def test_a_table_without_a_topic_or_a_file_is_named(folder: Path) -> None:
    (folder / TABLE_FILES[0]).write_text("")
    assert f"{TABLE_FILES[0]}: hoodie.streamer.source.kafka.topic must be one" in problem(folder)
    (folder / TABLE_FILES[0]).unlink()
    assert f"no configuration file {folder / TABLE_FILES[0]}" in problem(folder)


def test_of_several_tables_that_are_adopted_the_topic_says_whose_the_checkpoint_is(
    folder: Path,
) -> None:
    adopt = " ".join(
        f"--hoodie-conf lakeingest.table.public.{table}.adopt=hudi-streamer"
        for table in ("orders", "carts")
    )
    config = pipeline(folder, f"{adopt} --checkpoint postgres.public.orders,0:5")
    assert config.table("public.orders").checkpoint == "postgres.public.orders,0:5"
    assert config.table("public.carts").checkpoint is None


def test_a_common_file_without_tables_and_a_command_without_its_options_are_refused(
    folder: Path,
) -> None:
    (folder / "common.properties").write_text("bootstrap.servers=b:1\n")
    assert "hoodie.streamer.ingestion.tablesToBeIngested" in problem(folder)
    typed, _ = read_arguments("", "", MULTI_TABLE_OPTIONS, ["--table-type", "COPY_ON_WRITE"])
    with pytest.raises(UsageError, match="--base-path-prefix, --config-folder"):
        multi_table_config(typed)
