from __future__ import annotations

import pytest

from lakeingest.config import load_config
from lakeingest.config.redaction import scrub
from tests.config.settings import HUDI, HUDI_STREAMER, KAFKA, RECORDED, problem, without


def test_a_streamer_file_of_one_topic_is_a_whole_configuration() -> None:
    config = load_config(HUDI_STREAMER)
    assert (config.name, config.source.kind) == ("orders", "kafka")
    assert (config.source.connector, config.source.topic_prefix) == ("postgresql", "eu.shop")
    assert config.source.topics == ("eu.shop.public.orders",)
    assert config.source.transaction_topic == "eu.shop.transaction"
    assert config.target.path == "s3://lake/shop"
    assert config.folders.table("public.orders") == "s3://lake/shop"
    assert config.batch_max_events == 5000
    assert config.table("public.orders").key == ("id",)
    assert config.warnings == ()


def test_hudi_keys_without_effect_are_one_warning() -> None:
    without_effect = {
        "hoodie.upsert.shuffle.parallelism": "2",
        "hoodie.datasource.hive_sync.enable": "${env:LAKEINGEST_TEST_NOT_SET}",
        "hoodie.cleaner.policy": "KEEP_LATEST_COMMITS",
    }
    (warning,) = load_config({**RECORDED, **without_effect}).warnings
    assert warning.startswith("without effect here: ")
    assert warning.count("hoodie.") == 3


def test_our_own_key_wins_and_the_other_one_is_warned_about() -> None:
    config = load_config({**KAFKA, "hoodie.base.path": "s3://old"})
    assert config.target.path == "lake"
    assert config.warnings == ("hoodie.base.path has no effect: lakeingest.target.path is set",)


def test_the_old_and_the_new_name_with_different_values_are_an_error() -> None:
    settings = {**HUDI_STREAMER, "hoodie.streamer.kafka.source.maxEvents": "6000"}
    assert "mean the same and differ" in problem(settings)


def test_a_record_key_for_many_topics_is_refused() -> None:
    assert "means one table" in problem({**KAFKA, "hoodie.datasource.write.recordkey.field": "id"})


@pytest.mark.parametrize("topic", ["orders", "public.orders"])
def test_a_topic_that_a_router_renamed_is_the_one_thing_that_is_told_of(topic: str) -> None:
    settings = {**HUDI_STREAMER, "hoodie.streamer.source.kafka.topic": topic}
    start = "the given mapping: hoodie.streamer.source.kafka.topic: a topic is <prefix>.<schema or"
    assert problem(settings).startswith(start)
    for said in (problem(settings), problem({**settings, "lakeingest.source.topic.prefix": "eu"})):
        assert said.count("take the router out") == 1
        assert "problems" not in said


def test_a_record_key_for_several_topics_of_the_streamers_key_is_refused() -> None:
    topics = {
        "hoodie.streamer.source.kafka.topic": "eu.shop.orders,eu.shop.carts",
        "lakeingest.source.topic.prefix": "eu",
    }
    assert "means one table" in problem({**HUDI_STREAMER, **topics})


def test_a_streamer_file_without_brokers_is_told_of_kafkas_setting_alone() -> None:
    said = problem(without(HUDI_STREAMER, "bootstrap.servers"))
    assert said == "the given mapping: missing: bootstrap.servers"


def test_a_source_class_that_is_not_debezium_is_refused() -> None:
    said = problem({**HUDI_STREAMER, "hoodie.streamer.source.class": "JsonKafkaSource"})
    assert "PostgresDebeziumSource" in said


REGISTRY = "hoodie.deltastreamer.schemaprovider.registry.url"
PARTITION = "hoodie.datasource.write.partitionpath.field"
GENERATOR = "hoodie.datasource.write.keygenerator.class"
PAYLOAD = "hoodie.datasource.write.payload.class"
NO_PARTITIONS = "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
OF_POSTGRES = "org.apache.hudi.common.model.debezium.PostgresDebeziumAvroPayload"


@pytest.mark.parametrize(
    ("key", "text", "said"),
    [
        ("hoodie.table.ordering.fields", "updated_at", "ordered by their place"),
        ("hoodie.streamer.source.kafka.enable.failOnDataLoss", "false", "stops when offsets"),
        (REGISTRY.replace("delta", ""), "http://u:hunter2@registry", "registry.json"),
    ],
)
def test_what_is_not_followed_to_the_letter_is_a_warning(key: str, text: str, said: str) -> None:
    (warning,) = load_config({**RECORDED, key: text}).warnings
    assert key in warning
    assert said in warning
    assert text not in warning


DEBEZIUM_STYLE = {
    # All that Hudi's documentation puts into the file of a Debezium source.
    "hoodie.deltastreamer.source.kafka.topic": "postgres.shop.orders",
    REGISTRY: "http://registry:8081/subjects/postgres.shop.orders-value/versions/latest",
    "hoodie.deltastreamer.source.kafka.value.deserializer.class": "io.confluent.kafka.serializers."
    "KafkaAvroDeserializer",
    "schema.registry.url": "http://registry:8081",
    "bootstrap.servers": "broker:9092",
    "auto.offset.reset": "earliest",
    "group.id": "hudi",
    "hoodie.table.name": "orders",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "_event_lsn",
    "hoodie.table.ordering.fields": "_event_lsn",
    PARTITION: "",
    GENERATOR: NO_PARTITIONS,
    PAYLOAD: OF_POSTGRES,
    "hoodie.datasource.write.table.type": "COPY_ON_WRITE",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.write.record.merge.mode": "EVENT_TIME_ORDERING",
}


def test_a_file_for_debezium_and_postgresql_needs_only_a_target() -> None:
    config = load_config(DEBEZIUM_STYLE, ["lakeingest.target.path=s3://lake/shop"])
    assert config.warnings == ()
    assert (config.name, config.source.connector) == ("orders", "postgresql")
    assert config.source.format == "avro"
    assert config.folders.table("shop.orders") == "s3://lake/shop/shop.orders"
    assert config.formats() == {"delta"}
    base_path = load_config({**DEBEZIUM_STYLE, "hoodie.base.path": "s3://lake/orders"})
    assert base_path.folders.table("shop.orders") == "s3://lake/orders"


def test_the_base_path_of_several_topics_is_the_folder_of_the_lake() -> None:
    settings = without(KAFKA, "lakeingest.target.path")
    config = load_config({**settings, "hoodie.base.path": "s3://lake/shop"})
    assert config.folders.table("public.orders") == "s3://lake/shop/public.orders"


def test_the_registrys_base_url_counts_where_the_url_is_missing() -> None:
    both = {
        **without(DEBEZIUM_STYLE, "schema.registry.url"),
        "hoodie.streamer.schemaprovider.registry.baseUrl": "http://base:8081/subjects/",
        "lakeingest.target.path": "lake",
    }
    for settings, url in ((both, "registry"), (without(both, REGISTRY), "base")):
        options = load_config(settings).source.registry_options
        assert options["schema.registry.url"].get_secret_value() == f"http://{url}:8081"


MERGERS = (
    "hoodie.write.record.merge.custom.implementation.classes",
    "hoodie.datasource.write.record.merger.impls",
)
EVENT_TIME = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
COMMIT_TIME = "ce9acb64-bde0-424c-9b91-f6ebba25356d"


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (MERGERS[0], "com.acme.MyMerger"),
        (MERGERS[1], "org.apache.hudi.HoodieSparkRecordMerger, com.acme.MyMerger"),
        ("hoodie.write.record.merge.strategy.id", "1897ef5f-18bc-4557-939c-9d6a8afd1519"),
    ],
)
def test_a_class_that_merges_rows_is_refused_in_a_file_as_it_is_as_an_option(
    key: str, text: str
) -> None:
    assert f"{key}: rows are not merged by a class" in problem({**HUDI_STREAMER, key: text})


@pytest.mark.parametrize("key", MERGERS)
def test_hudis_own_mergers_are_passed_over_and_those_by_arrival_warned_about(key: str) -> None:
    strategy = "hoodie.record.merge.strategy.id"
    own = {key: "org.apache.hudi.DefaultSparkRecordMerger", strategy: EVENT_TIME}
    assert load_config({**HUDI_STREAMER, **own}).warnings == ()
    newest = {key: "org.apache.hudi.OverwriteWithLatestSparkRecordMerger", strategy: COMMIT_TIME}
    said = load_config({**HUDI_STREAMER, **newest}).warnings
    assert [text.partition(" is not followed")[0] for text in said] == [key, strategy]


@pytest.mark.parametrize(
    ("settings", "columns"),
    [
        ({PARTITION: "placed_on"}, ("placed_on",)),
        ({PARTITION: "a, b", GENERATOR: "org.apache.hudi.keygen.ComplexKeyGenerator"}, ("a", "b")),
        ({PARTITION: "a", GENERATOR: "SimpleKeyGenerator"}, ("a",)),
        ({PARTITION: "", GENERATOR: "SimpleKeyGenerator"}, ()),
        ({GENERATOR: NO_PARTITIONS}, ()),
    ],
)
def test_partition_columns_of_a_streamer_file_are_the_one_tables(
    settings: dict[str, str], columns: tuple[str, ...]
) -> None:
    config = load_config({**HUDI_STREAMER, **settings})
    assert config.table("public.orders").partition == columns
    assert config.warnings == ()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({GENERATOR: "org.apache.hudi.keygen.TimestampBasedKeyGenerator"}, "by columns as they"),
        ({PARTITION: "a:SIMPLE", GENERATOR: "CustomKeyGenerator"}, "by columns as they are"),
        ({PARTITION: "a:SIMPLE"}, "without a type"),
        ({PARTITION: "a,b", GENERATOR: "SimpleKeyGenerator"}, "takes one column"),
    ],
)
def test_a_partition_that_is_no_column_is_refused(settings: dict[str, str], said: str) -> None:
    assert said in problem({**HUDI_STREAMER, **settings})


def test_a_partition_field_for_many_topics_is_refused() -> None:
    assert "lakeingest.table.<collection>.partition" in problem({**KAFKA, PARTITION: "a"})


def test_a_partition_field_without_partitions_is_a_warning() -> None:
    config = load_config({**HUDI_STREAMER, PARTITION: "a", GENERATOR: "NonpartitionedKeyGenerator"})
    assert config.table("public.orders").partition == ()
    assert ["makes no partitions" in warning for warning in config.warnings] == [True]


def test_how_folders_are_named_is_handed_on_to_hudi() -> None:
    style = "hoodie.datasource.write.hive_style_partitioning"
    settings = {**HUDI_STREAMER, "lakeingest.target.format": "hudi", style: "false"}
    assert load_config(settings).target.hudi_writer_options() == {style: "false"}


@pytest.mark.parametrize(
    "key",
    [
        "hoodie.bloom.index.update.partition.path",
        "hoodie.simple.index.parallelism",
        "hoodie.global.simple.index.parallelism",
        "hoodie.aws.region",
        "hoodie.delete.shuffle.parallelism",
        "hoodie.finalize.write.parallelism",
    ],
)
def test_settings_of_index_cloud_and_parallelism_are_handed_on(key: str) -> None:
    config = load_config({**HUDI, key: "2"})
    assert config.target.hudi_writer_options() == {key: "2"}
    assert config.warnings == ()


@pytest.mark.parametrize("key", ["access.key", "secret.key", "session.token"])
def test_a_login_to_the_cloud_is_handed_on_and_shown_nowhere(key: str) -> None:
    login = {f"hoodie.aws.{key}": "hunter2-cloud"}
    config = load_config({**HUDI, **login})
    assert config.target.hudi_writer_options() == login
    assert "hunter2" not in repr(config)
    assert "hunter2" not in scrub("refused: hunter2-cloud")


def test_a_setting_of_the_writer_without_a_value_is_left_out_with_a_warning() -> None:
    """A template of all settings has many of them."""
    empty = {"hoodie.clean.automatic": "", "hoodie.parquet.compression.codec": "zstd"}
    config = load_config({**HUDI, **empty})
    assert config.target.hudi_writer_options() == {"hoodie.parquet.compression.codec": "zstd"}
    (warning,) = config.warnings
    assert warning.startswith("hoodie.clean.automatic has no value and is left out")


AS_STREAMED = {**KAFKA, "lakeingest.target.format": "hudi", PAYLOAD: OF_POSTGRES}


def test_a_table_is_kept_as_readers_of_hudi_streamers_tables_know_it() -> None:
    config = load_config(AS_STREAMED)
    assert config.has_event_columns
    assert config.deletes_are_hard("hudi")


@pytest.mark.parametrize(
    "barred",
    [
        {"lakeingest.metadata.columns": "own"},
        {"lakeingest.target.format": "delta"},
        {"lakeingest.transaction.mode": "none"},
        {"lakeingest.source.snapshot.again": "replace"},
        {PAYLOAD: "DefaultHoodieRecordPayload"},
    ],
)
def test_hudi_streamers_columns_are_not_taken_for_granted_where_a_setting_bars_them(
    barred: dict[str, str],
) -> None:
    assert not load_config({**AS_STREAMED, **barred}).has_event_columns


def test_the_one_table_is_named_by_a_setting_of_ours_where_its_topic_cannot_name_it() -> None:
    settings = {
        **HUDI_STREAMER,
        "hoodie.streamer.source.kafka.topic": "eu.shop.public.Order_Items",
        "lakeingest.table.public.Order Items.keyless": "stop",
    }
    tables = load_config(settings).tables
    assert {name: table.key for name, table in tables.items()} == {"public.Order Items": ("id",)}
