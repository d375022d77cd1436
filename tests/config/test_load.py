from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import SecretStr, ValidationError

from lakeingest.config import PipelineConfig, TableConfig, load_config
from lakeingest.config.model import Connector
from lakeingest.demo import demo_folder
from lakeingest.event_columns import BINLOG, POSTGRESQL
from tests.config.settings import KAFKA, RECORDED, problem, without

MODE = "lakeingest.transaction.mode"
CONNECTOR = "lakeingest.source.connector"
TOPICS = "lakeingest.source.topics"
ORDERS = "lakeingest.table.public.orders"


def test_a_small_configuration_has_all_the_defaults() -> None:
    config = load_config(RECORDED)
    assert config.batch_max_events == 100_000
    assert config.commit_max_transactions is None
    assert (config.deletes, config.toast_missing, config.metadata_prefix) == ("soft", "fail", "_")
    assert config.source.transaction_topic == "shop.transaction"
    assert (config.source.topics, config.source.topic_pattern) == ((), None)
    assert (config.source.decimal_mode, config.source.binary_mode) == ("precise", "bytes")
    assert config.folders.ledger == "lake/_lakeingest/ledger"
    assert config.table("public.orders") == TableConfig()
    assert config.warnings == ()


def test_the_packaged_demo_is_a_valid_configuration() -> None:
    config = load_config(demo_folder() / "pipeline.properties")
    assert config.source.connector == "postgresql"
    assert "public.orders" in config.tables
    assert config.warnings == ()


def test_a_collection_keeps_its_dots() -> None:
    columns, key = "order_id BIGINT, line_no INT", ("order_id", "line_no")
    lines = "lakeingest.table.public.order_lines"
    config = load_config({**RECORDED, f"{lines}.schema": columns, f"{lines}.key": ", ".join(key)})
    table = config.table("public.order_lines")
    assert (table.ddl, table.key) == (columns, key)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("lakeingest.batch.max.evnts", "lakeingest.batch.max.events"),
        ("lakeingest.batch.maxEvents", "lakeingest.batch.max.events"),
        ("lakeingest.Deletes", "lakeingest.deletes"),
        (f"{ORDERS}.shema", f"{ORDERS}.schema"),
        ("lakeingest.table.a.b.schema.aded", "lakeingest.table.a.b.schema.added"),
        (f"{ORDERS}.decimal.to.large", f"{ORDERS}.decimal.too.large"),
        (f"{ORDERS}.infinite.time", f"{ORDERS}.infinite.times"),
        ("lakeingest.tabel.public.orders.key", "lakeingest.table.public.orders.key"),
        ("lakeingst.deletes", "lakeingest.deletes"),
        ("source.kind", "lakeingest.source.kind"),
        ("deletes", "lakeingest.deletes"),
    ],
)
def test_a_misspelt_key_is_an_error_that_suggests_the_nearest(written: str, meant: str) -> None:
    assert f"unknown key {written}; did you mean {meant}?" in problem({**KAFKA, written: "x"})


@pytest.mark.parametrize("key", ["deletes", "hudi.table.type", "toast.missing"])
def test_a_key_of_the_pipeline_that_is_written_as_a_tables_is_named(key: str) -> None:
    written = f"lakeingest.table.public.orders.{key}"
    assert problem({**KAFKA, written: "x"}).endswith(
        f"unknown key {written}: it is one for all tables, set lakeingest.{key}"
    )


def test_a_key_that_is_like_no_other_points_to_the_reference() -> None:
    assert "config-reference" in problem({**RECORDED, "lakeingest.qqq.zzz": "x"})


def test_a_table_key_without_a_collection_is_an_error() -> None:
    assert "names no collection" in problem({**RECORDED, "lakeingest.table.schema": "id INT"})


def test_all_missing_keys_are_named_in_one_error() -> None:
    said = problem({})
    for key in (
        "lakeingest.pipeline.name",
        "lakeingest.source.connector",
        "lakeingest.source.topic.prefix",
        "lakeingest.target.path",
        "lakeingest.source.path",
    ):
        assert key in said


def test_problems_of_every_kind_are_named_together_and_each_once() -> None:
    settings = {
        **without(RECORDED, "lakeingest.pipeline.name"),
        "lakeingest.delets": "hard",
        "lakeingest.deletes": "x",
        "lakeingest.commit.max.transactions": "0",
        "lakeingest.target.path": "${env:LAKEINGEST_TEST_NOT_SET}",
        "lakeingest.source.topics": " , ",
        "lakeingest.table.public.orders.format": "iceberg",
    }
    first, *said = problem(settings).splitlines()
    assert "7 problems" in first
    assert sorted(said) == [
        "  - lakeingest.commit.max.transactions=0: write a whole number from 1 on",
        "  - lakeingest.deletes=x: should be 'soft' or 'hard'",
        "  - lakeingest.source.topics has no value: give one or remove the key",
        "  - lakeingest.table.public.orders.format=iceberg: should be 'delta' or 'hudi'",
        "  - lakeingest.target.path (the mapping): the environment variable "
        "LAKEINGEST_TEST_NOT_SET is not set",
        "  - missing: lakeingest.pipeline.name",
        "  - unknown key lakeingest.delets; did you mean lakeingest.deletes?",
    ]


@pytest.mark.parametrize(
    ("missing", "named"),
    [
        ("lakeingest.source.topic.prefix", "missing: lakeingest.source.topic.prefix"),
        ("lakeingest.source.path", "missing: lakeingest.source.path (or bootstrap.servers for"),
        (CONNECTOR, f"missing: {CONNECTOR}"),
    ],
)
def test_what_is_missing_is_named_once(missing: str, named: str) -> None:
    said = problem({**without(RECORDED, missing), TOPICS: "shop.public.orders"})
    assert said.startswith(f"the given mapping: {named}")
    assert "problems" not in said


def test_a_table_has_the_targets_format_unless_it_is_given_one() -> None:
    orders, others = "public.orders", "public.others"
    plain = load_config(RECORDED)
    assert (plain.format_of(orders), plain.formats()) == ("delta", {"delta"})
    given = {f"lakeingest.table.{orders}.key": "id", "lakeingest.target.format": "hudi"}
    assert load_config({**RECORDED, **given}).format_of(orders) == "hudi"
    mixed = load_config({**RECORDED, f"lakeingest.table.{orders}.format": "hudi"})
    assert (mixed.format_of(orders), mixed.format_of(others)) == ("hudi", "delta")
    assert mixed.formats() == {"delta", "hudi"}


def test_settings_of_hudis_writer_reach_hudi_tables_and_no_others() -> None:
    given = {"hoodie.bucket.index.num.buckets": "16", "hoodie.spark.sql.whatever": "1"}
    config = load_config({**RECORDED, **given, "lakeingest.target.format": "hudi"})
    assert config.target.hudi_writer_options() == {"hoodie.bucket.index.num.buckets": "16"}
    assert config.warnings == ("without effect here: hoodie.spark.sql.whatever",)
    on_delta = load_config({**RECORDED, **given})
    assert on_delta.target.hudi_options == {}
    assert on_delta.warnings == (f"without effect here: {', '.join(given)}",)


@pytest.mark.parametrize("text", ["", "   ", ",", " , ,"])
@pytest.mark.parametrize(
    "key",
    [
        "lakeingest.table.public.orders.schema",
        "lakeingest.table.public.orders.key",
        "lakeingest.source.topics",
        "lakeingest.transaction.filtered.collections",
        "bootstrap.servers",
        "sasl.jaas.config",
    ],
)
def test_a_key_without_a_value_is_an_error(key: str, text: str) -> None:
    assert problem({**KAFKA, key: text}) == (
        f"the given mapping: {key} has no value: give one or remove the key"
    )


def test_a_setting_of_the_kafka_client_whose_empty_value_means_none_is_handed_on() -> None:
    key = "ssl.endpoint.identification.algorithm"
    assert load_config({**KAFKA, key: ""}).source.kafka_client_options()[key] == ""


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({None: "a"}, "the key None is no text"),
        ({7: "a"}, "the key 7 is no text"),
        ({"sasl.password": SecretStr("hunter2")}, "sasl.password: its value is of type SecretStr"),
        ({"lakeingest.deletes": None}, "lakeingest.deletes: its value is of type NoneType"),
        ({"lakeingest.deletes": True}, "lakeingest.deletes: its value is of type bool"),
    ],
)
def test_what_is_no_text_in_a_mapping_is_refused_by_its_key(
    settings: dict[Any, Any], said: str
) -> None:
    given: dict[Any, Any] = {**KAFKA, **settings}
    assert said in problem(given)


def test_a_number_and_a_path_in_a_mapping_are_read_as_they_are_written(tmp_path: Path) -> None:
    given: dict[str, Any] = {"lakeingest.batch.max.events": 7, "lakeingest.target.path": tmp_path}
    config = load_config({**RECORDED, **given})
    assert (config.batch_max_events, config.target.path) == (7, str(tmp_path))


@pytest.mark.parametrize(
    ("text", "topics", "pattern"),
    [
        ("shop.public.orders", ("shop.public.orders",), None),
        ("shop.public.a, shop.public.b,", ("shop.public.a", "shop.public.b"), None),
        ("shop.public.a,, shop.public.b", ("shop.public.a", "shop.public.b"), None),
        (r"shop\.public\..*", (), r"shop\.public\..*"),
        ("shop.public.(a|b)", (), "shop.public.(a|b)"),
        ("shop.public.x{1,2}", (), "shop.public.x{1,2}"),
    ],
)
def test_topics_are_a_list_of_names_or_a_pattern(
    text: str, topics: tuple[str, ...], pattern: str | None
) -> None:
    source = load_config({**RECORDED, TOPICS: text}).source
    assert (source.topics, source.topic_pattern) == (topics, pattern)


@pytest.mark.parametrize(
    ("topics", "hint"),
    [("shop.public.orders", "; did you mean public.orders?"), ("shop.public.orders|x", "")],
)
def test_a_table_that_is_not_among_the_topics_is_a_warning(topics: str, hint: str) -> None:
    filtered = "lakeingest.transaction.filtered.collections"
    given = {
        TOPICS: topics,
        "lakeingest.table.public.order.schema": "id INT",
        "lakeingest.table.public.orders.schema": "id INT",
        filtered: "public.oders, public.orders",
    }
    assert load_config({**RECORDED, **given}).warnings == (
        f"table public.order is not among the topics{hint}",
        f"{filtered}: public.oders is not among the topics{hint}",
    )


def test_topics_from_a_reference_are_not_suggested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEINGEST_TEST_TOPICS", "shop.hunter2.orders")
    monkeypatch.setenv("LAKEINGEST_TEST_FILTERED", "hunter2.carts")
    given = {
        TOPICS: "${env:LAKEINGEST_TEST_TOPICS}",
        "lakeingest.table.hunter.orders.schema": "id INT",
        "lakeingest.transaction.filtered.collections": "${env:LAKEINGEST_TEST_FILTERED}",
    }
    (warning,) = load_config({**RECORDED, **given}).warnings
    assert warning == "table hunter.orders is not among the topics"


def test_brokers_without_a_kind_mean_kafka() -> None:
    assert load_config(without(KAFKA, "lakeingest.source.kind")).source.kind == "kafka"


def test_brokers_and_a_folder_without_a_kind_are_ambiguous() -> None:
    assert "say which one" in problem(without({**RECORDED, **KAFKA}, "lakeingest.source.kind"))


def test_native_kafka_keys_pass_through_and_read_committed_is_the_default() -> None:
    assert load_config({**KAFKA, "fetch.max.bytes": "1000"}).source.kafka_client_options() == {
        "isolation.level": "read_committed",
        "bootstrap.servers": "broker:9092",
        "fetch.max.bytes": "1000",
    }


def test_to_start_at_the_latest_offset_is_refused() -> None:
    assert "can only be earliest" in problem({**KAFKA, "auto.offset.reset": "latest"})
    options = load_config({**KAFKA, "auto.offset.reset": "earliest"}).source.kafka_options
    assert "auto.offset.reset" not in options


def test_kafka_without_brokers_is_an_error() -> None:
    assert "missing: bootstrap.servers" in problem(without(KAFKA, "bootstrap.servers"))


def test_kafka_keys_on_a_recorded_source_are_one_warning() -> None:
    config = load_config({**RECORDED, "group.id": "a", "client.id": "b"})
    assert config.warnings == ("without effect on a recorded source: client.id, group.id",)
    assert config.source.kafka_options == {}


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_lake_that_is_a_file_is_a_matter_of_configuration(tmp_path: Path, scheme: str) -> None:
    file = tmp_path / "lake"
    file.write_text("x", "utf-8")
    said = problem({**RECORDED, "lakeingest.target.path": f"{scheme}{file}"})
    assert f"lakeingest.target.path={scheme}{file}: is a file; name the folder" in said


def test_a_table_may_have_a_folder_of_its_own_name() -> None:
    config = load_config({**RECORDED, f"{ORDERS}.path": "sales/orders/"})
    assert config.folders.table("public.orders") == "lake/sales/orders"
    assert config.folders.table("public.carts") == "lake/public.carts"


def test_two_tables_at_one_folder_are_named() -> None:
    paths = {f"lakeingest.table.public.{table}.path": "same" for table in ("orders", "carts")}
    said = problem({**RECORDED, **paths})
    assert "tables public.carts and public.orders would lie in one folder" in said


def test_an_override_wins_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "shop.properties"
    path.write_text("".join(f"{key}={text}\n" for key, text in RECORDED.items()), "utf-8")
    assert load_config(path, ["lakeingest.batch.max.events=7"]).batch_max_events == 7
    assert load_config(str(path.with_suffix(""))).name == "shop"


def test_the_configuration_is_frozen() -> None:
    config = load_config(RECORDED)
    with pytest.raises(ValidationError):
        config.name = "other"
    with pytest.raises(ValidationError):
        PipelineConfig.model_validate({**config.model_dump(), "unknown": 1})


def test_deletes_are_hard_by_default_where_readers_come_from_hudi_streamer() -> None:
    own, rfc39 = RECORDED, {**RECORDED, "lakeingest.metadata.columns": "hudi"}
    for settings, delta, hudi in (
        (own, False, False),
        (rfc39, False, True),
        ({**rfc39, "lakeingest.deletes": "soft"}, False, False),
        ({**own, "lakeingest.deletes": "hard"}, True, True),
    ):
        config = load_config(settings)
        assert (config.deletes_are_hard("delta"), config.deletes_are_hard("hudi")) == (delta, hudi)


def test_rfc_39s_columns_are_the_connectors_and_keep_their_names() -> None:
    chosen = {"lakeingest.metadata.columns": "hudi", "lakeingest.metadata.prefix": "li_"}
    names = load_config({**RECORDED, **chosen}).metadata()
    assert names.names == ("li_position", "li_deleted", "li_column_positions")
    assert names.event == tuple(POSTGRESQL.fieldNames())
    mysql = {**RECORDED, **chosen, CONNECTOR: "mysql"}
    assert load_config(mysql).metadata().event == tuple(BINLOG.fieldNames())
    assert load_config(RECORDED).metadata().event == ()


@pytest.mark.parametrize("connector", get_args(get_args(Connector)[0]))
def test_every_connector_whose_order_is_known_can_be_named(connector: str) -> None:
    mode = {MODE: "none"} if connector == "yugabytedb-grpc" else {}
    assert load_config({**RECORDED, CONNECTOR: connector, **mode}).source.connector == connector


def test_a_connector_that_is_refused_says_why() -> None:
    said = problem({**RECORDED, CONNECTOR: "mongodb"})
    assert f"{CONNECTOR}=mongodb: mongodb is" in said
    assert "out of scope: its events hold documents" in said


def test_columns_of_hudi_streamer_need_a_connector_that_it_knew() -> None:
    said = problem({**RECORDED, CONNECTOR: "sqlserver", "lakeingest.metadata.columns": "hudi"})
    assert "no tables of a sqlserver connector" in said


NO_TRANSACTIONS = {**RECORDED, MODE: "none"}
ORDERING = "lakeingest.source.ordering.columns"
ONE_BY_ONE = {"lakeingest.commit.max.transactions": "1"}
EACH = {"lakeingest.commit.mode": "per-transaction"}
TIMEOUT_ACTION = "lakeingest.transaction.timeout.action"
IN_PART = {TIMEOUT_ACTION: "apply-partial"}


def test_ordering_columns_are_the_pipelines_or_a_tables() -> None:
    of_orders = {"lakeingest.table.public.orders.ordering.columns": "changed_at"}
    config = load_config({**NO_TRANSACTIONS, ORDERING: "source.ts_ms, version", **of_orders})
    assert config.source.ends_topic is None
    assert config.source.ordering_columns == ("source.ts_ms", "version")
    assert config.table("public.orders").ordering_columns == ("changed_at",)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({MODE: "metadata", ORDERING: "version"}, f"ordering columns need {MODE}=none"),
        (
            {MODE: "metadata", CONNECTOR: "yugabytedb-grpc"},
            "nothing tells when a transaction is whole",
        ),
        (
            {CONNECTOR: "yugabytedb", ORDERING: "version"},
            "only fields of the source block (source.…) can order its rows",
        ),
        ({CONNECTOR: "mysql"}, "nothing tells that another mysql server has taken over"),
        (
            {"lakeingest.source.snapshot.again": "replace"},
            "lakeingest.source.snapshot.again=replace needs whole transactions",
        ),
        (
            {"lakeingest.metadata.columns": "hudi"},
            f"lakeingest.metadata.columns=hudi needs {MODE}=metadata; set that, or remove it",
        ),
        (ONE_BY_ONE, f"lakeingest.commit.max.transactions needs {MODE}=metadata"),
        (EACH, f"lakeingest.commit.mode=per-transaction needs {MODE}=metadata"),
        (IN_PART, f"{TIMEOUT_ACTION}=apply-partial needs {MODE}=metadata"),
        (
            IN_PART | EACH | {MODE: "metadata"},
            f"{TIMEOUT_ACTION}=apply-partial needs lakeingest.commit.mode=grouped",
        ),
        (
            IN_PART | {MODE: "metadata", "lakeingest.table.public.carts.keyless": "append"},
            f"{TIMEOUT_ACTION}=apply-partial needs a key in every table (public.carts: none)",
        ),
        (
            EACH | ONE_BY_ONE,
            "lakeingest.commit.max.transactions, lakeingest.commit.mode=per-transaction need "
            f"{MODE}=metadata; set that, or remove them",
        ),
    ],
)
def test_what_has_no_order_without_transactions_is_refused(more: dict[str, str], said: str) -> None:
    assert said in problem({**NO_TRANSACTIONS, **more})


def test_settings_name_a_table_whose_name_a_topic_cannot_hold(tmp_path: Path) -> None:
    lines = [f"{key}={text}" for key, text in RECORDED.items()]
    lines += [
        "lakeingest.source.topics=shop.public.Order_Items,shop.public.prix_,shop.public.gr__e",
        r"lakeingest.table.public.Order\ Items.key=id",
        "lakeingest.table.public.prix$.key=id",
        "lakeingest.table.public.größe.key=id",
        "lakeingest.transaction.filtered.collections=public.prix$,public.größe",
    ]
    path = tmp_path / "pipeline.properties"
    path.write_text("\n".join(lines), "utf-8")
    config = load_config(path)
    assert {*config.tables} == {"public.Order Items", "public.prix$", "public.größe"}
    assert config.warnings == ()


def test_a_batch_size_may_be_automatic() -> None:
    assert load_config({**RECORDED, "lakeingest.batch.max.events": "auto"}).batch_max_events is None
