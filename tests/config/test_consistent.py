"""Settings that are right one by one, and wrong together."""

from __future__ import annotations

import re

import pytest
from pydantic import ValidationError

from lakeingest.config import SourceConfig, load_config
from tests.config.settings import HUDI, HUDI_STREAMER, KAFKA, RECORDED, problem

TOPICS = "lakeingest.source.topics"
FILTERED = "lakeingest.transaction.filtered.collections"
ORDERS = "lakeingest.table.public.orders"
ADOPTED = {**KAFKA, "lakeingest.target.format": "hudi", f"{ORDERS}.adopt": "hudi-streamer"}
CHECKPOINT = f"{ORDERS}.checkpoint"


@pytest.mark.parametrize("mode", ["metadata", "none"])
def test_topics_outside_the_prefix_are_refused_by_name(mode: str) -> None:
    settings = {**RECORDED, "lakeingest.transaction.mode": mode}
    said = problem({**settings, TOPICS: "crm.public.orders, orders, shop.public.carts, shopping.x"})
    assert "('shop.'), which crm.public.orders, orders, shopping.x lack" in said
    assert "take the router out" in said
    assert load_config({**settings, TOPICS: "shop.public.carts"}).warnings == ()


def test_topics_from_a_reference_are_refused_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEINGEST_TEST_TOPICS", "hunter2.public.orders")
    said = problem({**RECORDED, TOPICS: "${env:LAKEINGEST_TEST_TOPICS}"})
    assert "(its value is not shown): a topic begins with" in said


def test_a_model_refuses_topics_outside_the_prefix() -> None:
    source = load_config(KAFKA).source.model_dump() | {"topics": ("orders",)}
    with pytest.raises(ValidationError, match="take the router out"):
        SourceConfig.model_validate(source)


def test_the_topic_of_a_streamer_file_begins_with_the_prefix_that_is_given() -> None:
    for prefix in ("eu", "eu.shop"):
        given = {**HUDI_STREAMER, "lakeingest.source.topic.prefix": prefix}
        assert load_config(given).source.topics == ("eu.shop.public.orders",)
    said = problem({**HUDI_STREAMER, "lakeingest.source.topic.prefix": "us"})
    assert "hoodie.streamer.source.kafka.topic=eu.shop.public.orders: a topic begins" in said


@pytest.mark.parametrize(
    ("prefix", "connector", "named", "right"),
    [
        ("shop", "postgresql", "shop.public.orders", "public.orders"),
        ("eu.shop", "mysql", "eu.shop.sales.orders", "sales.orders"),
        ("shop", "sqlserver", "shop.db.dbo.orders", "db.dbo.orders"),
        # A database of the prefix's name.
        ("shop", "mysql", "shop.orders", None),
        ("shop", "sqlserver", "shop.dbo.orders", None),
    ],
)
def test_a_table_is_named_without_the_prefix(
    prefix: str, connector: str, named: str, right: str | None
) -> None:
    settings = {
        **RECORDED,
        "lakeingest.source.topic.prefix": prefix,
        "lakeingest.source.connector": connector,
        f"lakeingest.table.{named}.key": "id",
        FILTERED: named,
    }
    if right is None:
        assert load_config(settings).warnings == ()
        return
    said = problem(settings)
    assert f"lakeingest.table.{named}.*: a table is named without the topic prefix" in said
    assert f"write lakeingest.table.{right}.*" in said
    assert f"{FILTERED}: write {right}: {named} begins with the topic prefix" in said


def test_filtered_collections_from_a_reference_are_refused_unseen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LAKEINGEST_TEST_FILTERED", "shop.hunter2.orders")
    said = problem({**RECORDED, FILTERED: "${env:LAKEINGEST_TEST_FILTERED}"})
    assert f"{FILTERED}: one begins with the topic prefix" in said


def test_a_table_whose_own_name_begins_like_the_prefix_is_taken_where_its_topic_is_listed() -> None:
    listed = {TOPICS: "shop.shop.public.orders", "lakeingest.table.shop.public.orders.key": "id"}
    assert load_config({**RECORDED, **listed}).warnings == ()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({CHECKPOINT: "zzz"}, f"{CHECKPOINT}: A checkpoint has the form topic,0:10,1:20"),
        ({CHECKPOINT: "shop.public.carts,0:1"}, f"{CHECKPOINT} is of another topic"),
        (
            {"lakeingest.target.format": "delta"},
            r"set lakeingest\.table\.<collection>\.format=hudi for public\.orders",
        ),
        ({"lakeingest.deletes": "soft"}, "Set lakeingest.deletes=hard"),
        ({TOPICS: "shop.public.carts"}, r"no topic of public\.orders is read"),
        ({"lakeingest.source.connector": "mysql"}, "only tables of PostgresDebeziumSource"),
    ],
)
def test_an_adoption_that_cannot_be_is_refused_before_anything_runs(
    more: dict[str, str], said: str
) -> None:
    assert re.search(said, problem({**ADOPTED, **more}))
    load_config({**ADOPTED, CHECKPOINT: "shop.public.orders,0:1"})


def test_a_checkpoint_goes_with_an_adopted_table() -> None:
    said = problem({**RECORDED, CHECKPOINT: "shop.public.orders,0:1"})
    assert f"{CHECKPOINT} goes with a table that is adopted" in said


UPDATES = "hoodie.clustering.updates.strategy"
MODE, LOCK = "hoodie.write.concurrency.mode", "hoodie.write.lock.provider"
LOCAL = "org.apache.hudi.client.transaction.lock.InProcessLockProvider"
LOSING = "org.apache.hudi.client.clustering.update.strategy.SparkAllowUpdateStrategy"
ENGINE, TYPE = "hoodie.index.bucket.engine", "lakeingest.hudi.table.type"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS"}, "can only be KEEP_LATEST_COMMITS"),
        ({"hoodie.cleaner.policy": "KEEP_LATEST_BY_HOURS"}, "can only be KEEP_LATEST_COMMITS"),
        ({"hoodie.bucket.index.num.buckets": "x"}, "num.buckets: write a whole number"),
        ({"hoodie.clean.commits.retained": "1.5"}, "retained: write a whole number"),
        ({"hoodie.clean.hours.retained": "24"}, "set hoodie.clean.commits.retained"),
        ({"hoodie.cleaner.fileversions.retained": "3"}, "set hoodie.clean.commits.retained"),
        ({"hoodie.clean.failed.writes.policy": "NEVER"}, "cannot be NEVER"),
        ({"hoodie.cleaner.policy.failed.writes": "NEVER"}, "cannot be NEVER"),
        ({"hoodie.client.heartbeat.interval_in_ms": "1m"}, "in_ms: write a whole number"),
        ({"hoodie.client.heartbeat.tolerable.misses": "two"}, "misses: write a whole number"),
        ({"hoodie.clustering.inline": "true"}, "set hoodie.index.type (SIMPLE"),
        ({"hoodie.clustering.schedule.inline": "true"}, "set hoodie.index.type (SIMPLE"),
        ({UPDATES: LOSING}, "being clustered would be lost"),
        ({MODE: "optimistic_concurrency_control", LOCK: LOCAL}, "name one that all of them share"),
        ({ENGINE: "CONSISTENT_HASHING", TYPE: "COPY_ON_WRITE"}, "is for MERGE_ON_READ alone"),
    ],
)
def test_settings_of_hudis_writer_that_cannot_be_are_refused_where_it_writes(
    more: dict[str, str], said: str
) -> None:
    assert said in problem({**HUDI, **more})
    load_config({**RECORDED, **more})


@pytest.mark.parametrize(
    "more",
    [
        # Hudi follows the number only where no policy is named.
        {"hoodie.clean.hours.retained": "24", "hoodie.clean.policy": "KEEP_LATEST_COMMITS"},
        {LOCK: LOCAL},
        {MODE: "OPTIMISTIC_CONCURRENCY_CONTROL", LOCK: LOCAL.replace("InProcess", "StorageBased")},
        {"hoodie.clustering.inline": "true", "hoodie.index.type": "BLOOM"},
        {"hoodie.clustering.inline": "true", ENGINE: "CONSISTENT_HASHING"},
        {UPDATES: LOSING, "hoodie.clustering.rollback.pending.replacecommit.on.conflict": "true"},
    ],
)
def test_settings_of_table_services_that_do_no_harm_are_handed_on(more: dict[str, str]) -> None:
    config = load_config({**HUDI, **more})
    assert config.target.hudi_writer_options() == more
    assert config.warnings == ()


@pytest.mark.parametrize(
    ("number", "switch"),
    [
        ("hoodie.clean.commits.retained", "hoodie.clean.automatic"),
        ("hoodie.keep.max.commits", "hoodie.archive.automatic"),
        ("hoodie.compact.inline.max.delta.commits", "hoodie.compact.inline"),
        ("hoodie.compact.inline.max.delta.commits", "hoodie.compact.schedule.inline"),
        ("hoodie.clustering.inline.max.commits", "hoodie.clustering.schedule.inline"),
    ],
)
def test_how_often_a_table_service_works_is_a_warning_where_it_does_not(
    number: str, switch: str
) -> None:
    given = {**HUDI, "hoodie.index.type": "BLOOM", number: "20"}
    for more in ({}, {switch: "false"}):
        (warning,) = load_config({**given, **more}).warnings
        assert f"{number} has no effect without" in warning
    assert load_config({**given, switch: "true"}).warnings == ()


def test_clustering_beside_a_stream_is_a_warning() -> None:
    (warning,) = load_config({**HUDI, "hoodie.clustering.async.enabled": "true"}).warnings
    assert "set hoodie.clustering.inline=true" in warning


def test_a_type_of_hudi_tables_where_there_are_none_is_a_warning() -> None:
    kind = {**RECORDED, TYPE: "COPY_ON_WRITE"}
    (warning,) = load_config(kind).warnings
    assert warning.startswith(f"{TYPE} has no effect")
    for formats in ("lakeingest.target.format", f"{ORDERS}.format"):
        assert load_config({**kind, formats: "hudi"}).warnings == ()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"lakeingest.target.format": "hudi"}, "Hudi tables"),
        ({"lakeingest.delta.deletion.vectors": "false"}, "without deletion vectors"),
        ({"lakeingest.delta.commit": "public"}, "lakeingest.delta.commit=direct"),
        ({f"{ORDERS}.partition": "region"}, "second (public.orders)"),
    ],
)
def test_what_makes_versions_of_transactions_slow_is_a_warning(
    more: dict[str, str], said: str
) -> None:
    each = {**RECORDED, "lakeingest.commit.mode": "per-transaction"}
    assert load_config(each).warnings == ()
    (warning,) = load_config({**each, **more}).warnings
    assert said in warning
    assert load_config({**RECORDED, **more}).warnings == ()


def test_all_contradictions_are_named_at_once() -> None:
    said = problem(
        {
            **ADOPTED,
            "lakeingest.deletes": "soft",
            "lakeingest.commit.max.transactions": "5",
            "lakeingest.transaction.mode": "none",
            "lakeingest.table.public.carts.keyless": "append",
            "lakeingest.source.snapshot.again": "replace",
            "lakeingest.table.public.orders.path": "same",
            "lakeingest.table.public.carts.path": "same",
            CHECKPOINT: "zzz",
        }
    )
    assert "6 problems" in said
    assert "lakeingest.table.public.carts.keyless=append, " in said
    assert "source:" not in said


@pytest.mark.parametrize(
    ("key", "text", "said"),
    [
        ("lakeingest.batch.max.events", "many", "write a whole number"),
        ("lakeingest.batch.max.events", "1.5", "write a whole number"),
        ("lakeingest.batch.max.events", "0", "write a whole number from 1 on"),
        ("lakeingest.commit.max.transactions", "0", "write a whole number from 1 on"),
        ("lakeingest.ledger.retention.hours", "99999999", "write a whole number up to 876000"),
        ("lakeingest.metadata.prefix", "1-", "write letters, digits and _, and no digit first"),
        ("lakeingest.deletes", "firm", "should be 'soft' or 'hard'"),
        ("lakeingest.source.kind", "recordd", "should be 'recorded' or 'kafka'"),
        ("lakeingest.source.format", "protobuf", "should be 'json' or 'avro'"),
        ("lakeingest.target.format", "iceberg", "should be 'delta' or 'hudi'"),
        (f"{ORDERS}.format", "iceberg", "should be 'delta' or 'hudi'"),
        (f"{ORDERS}.infinite.times", "keep", "should be 'fail', 'null' or 'edge'"),
        ("lakeingest.schema.retyped", "evolve", "should be 'ignore' or 'stop'"),
        ("lakeingest.table.a.b.schema.retyped", "evolve", "should be 'ignore' or 'stop'"),
    ],
)
def test_a_value_that_does_not_fit_says_what_to_write(key: str, text: str, said: str) -> None:
    assert problem({**RECORDED, key: text}) == f"the given mapping: {key}={text}: {said}"


def test_a_pattern_that_is_none_names_its_key_and_says_what_to_write() -> None:
    said = problem({**RECORDED, TOPICS: "shop.(a"})
    assert f"{TOPICS}=shop.(a: not a regular expression" in said
    assert "write one that a whole topic name matches" in said
    assert "should" not in said
    assert "transaction" not in said
