from __future__ import annotations

import builtins
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Producer, admin
from pyspark.sql import Row, SparkSession

from lakeingest import frame_schemas
from lakeingest.apply.window.offset_ranges import plan_window_ranges
from lakeingest.errors import AccessError, DataError, UnavailableError
from lakeingest.ledger.publication import Frontier
from lakeingest.source import (
    KafkaSource,
    MissingTopicError,
    OffsetRange,
    TopicPartition,
    Watermarks,
    data_loss_error,
)
from lakeingest.topic_names import TopicNames
from tests.logs.folder import line, write_topic
from tests.rig.kafka import PASSWORD, USER, KafkaBroker
from tests.rig.replay import replay

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

# confluent_kafka exports this class, but does not say so to a type checker.
NEW_TOPIC: Any = vars(admin)["NewTopic"]


@pytest.fixture
def prefix() -> str:
    """A prefix that no other test of the session uses."""
    return f"t{uuid4().hex[:12]}"


@pytest.fixture
def other(tmp_path: Path) -> Iterator[KafkaBroker]:
    """A broker of one test alone, which it may kill."""
    with KafkaBroker(tmp_path / "broker") as running:
        yield running


def source(
    spark: SparkSession, broker: KafkaBroker, prefix: str, pattern: str | None = None, **more: Any
) -> KafkaSource:
    settings = {"bootstrap.servers": broker.bootstrap, **more.pop("settings", {})}
    return KafkaSource(
        spark,
        settings,
        TopicNames(prefix, pattern=pattern, **more),
        transaction_topic=f"{prefix}.transaction",
    )


def produce(broker: KafkaBroker, topic: str, count: int, partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(count):
        producer.produce(topic, value=f"v{number}", partition=partition)
    assert producer.flush(30) == 0


def topic_of(broker: KafkaBroker, prefix: str, count: int) -> str:
    """Create a topic with one partition of ``count`` records."""
    topic = f"{prefix}.a"
    broker.create_topics({topic: 1})
    produce(broker, topic, count)
    return topic


def transactional(broker: KafkaBroker) -> Producer:
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": f"x{uuid4().hex}"}
    )
    producer.init_transactions(30)
    return producer


def marks_once_ended(source: KafkaSource, topic: str, high: int) -> Watermarks:
    """Return the bounds of a topic's only partition once it reaches ``high``; wait half a minute.

    The broker answers that a transaction has ended before it has written so into each partition.
    """
    stop = time.monotonic() + 30
    while True:
        (marks,) = source.watermarks([topic]).values()
        if marks.high >= high or time.monotonic() > stop:
            return marks
        time.sleep(0.05)


def login(broker: KafkaBroker, password: str) -> dict[str, str]:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return {
        "bootstrap.servers": broker.bootstrap_with_login,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{module} required username="{USER}" password="{password}";',
    }


def offsets(rows: list[Row]) -> list[tuple[str, int, int]]:
    return sorted((row.topic, row.partition, row.offset) for row in rows)


def test_explicit_ranges_are_read_exactly(
    spark: SparkSession, broker: KafkaBroker, prefix: str
) -> None:
    a, b = f"{prefix}.a", f"{prefix}.b"
    broker.create_topics({a: 2, b: 1})
    produce(broker, a, 5, partition=0)
    produce(broker, a, 5, partition=1)
    produce(broker, b, 5)
    kafka = source(spark, broker, prefix)
    frame = kafka.read([OffsetRange(b, 0, 4, 5), OffsetRange(a, 1, 1, 3), OffsetRange(a, 0, 2, 2)])
    assert frame.schema == frame_schemas.RECORD
    assert offsets(frame.collect()) == [(a, 1, 1), (a, 1, 2), (b, 0, 4)]
    assert kafka.read([OffsetRange(a, 0, 2, 2)]).collect() == []
    kafka.close()
    kafka.close()


def test_bounds_are_of_every_partition_also_of_empty_ones(
    spark: SparkSession, broker: KafkaBroker, prefix: str
) -> None:
    topic = f"{prefix}.a"
    broker.create_topics({topic: 3})
    produce(broker, topic, 4, partition=1)
    broker.delete_records(topic, 1, before=3)
    bounds = source(spark, broker, prefix).watermarks([topic])
    (id_,) = {marks.topic_id for marks in bounds.values()}
    assert id_
    assert bounds == {
        TopicPartition(topic, 0): Watermarks(0, 0, topic_id=id_),
        TopicPartition(topic, 1): Watermarks(3, 4, topic_id=id_),
        TopicPartition(topic, 2): Watermarks(0, 0, topic_id=id_),
    }


def test_a_topic_made_again_has_another_id_and_is_not_read_on(
    spark: SparkSession, broker: KafkaBroker, prefix: str
) -> None:
    """It has grown past the offset that is wanted, so that offsets alone tell nothing."""
    topic = topic_of(broker, prefix, 3)
    kafka = source(spark, broker, prefix)
    ranges = plan_window_ranges(kafka, None, Frontier(), 100)
    applied = Frontier(offsets={topic: {0: 3}}).with_topic_ids(ranges.topic_ids)
    assert plan_window_ranges(kafka, None, applied, 100).nothing
    broker.delete_topic(topic)
    with pytest.raises(MissingTopicError, match=f"'{topic}' does not exist"):
        kafka.watermarks([topic])
    broker.create_topics({topic: 1, f"{prefix}.b": 1})
    produce(broker, topic, 5)
    with pytest.raises(DataError, match=f"id of topic '{topic}' is another one"):
        plan_window_ranges(kafka, None, applied, 100)
    without = replace(applied, topic_ids={})
    assert [
        (part.start, part.end) for part in plan_window_ranges(kafka, None, without, 100).data
    ] == [(3, 5)]


def test_aborted_transactions_are_not_seen(
    spark: SparkSession, broker: KafkaBroker, prefix: str
) -> None:
    topic = f"{prefix}.a"
    broker.create_topics({topic: 1})
    producer = transactional(broker)
    for text, commits in (("kept", True), ("aborted", False), ("kept too", True), ("gone", False)):
        producer.begin_transaction()
        producer.produce(topic, value=text)
        producer.flush(30)
        (producer.commit_transaction if commits else producer.abort_transaction)(30)
    kafka = source(spark, broker, prefix)
    # Each transaction takes two offsets: its record and the marker of its end.
    marks = marks_once_ended(kafka, topic, 8)
    assert (marks.earliest, marks.high) == (0, 8)
    rows = kafka.read([OffsetRange(topic, 0, 0, 8)]).collect()
    assert sorted((row.offset, bytes(row.value)) for row in rows) == [
        (0, b"kept"),
        (4, b"kept too"),
    ]
    began = time.monotonic()
    assert kafka.read([OffsetRange(topic, 0, 5, 8)]).collect() == []
    assert time.monotonic() - began < 60, "a range that ends with an aborted transaction waits"
    careless = source(spark, broker, prefix, settings={"isolation.level": "read_uncommitted"})
    assert careless.read([OffsetRange(topic, 0, 0, 8)]).count() == 4


def test_open_transaction_bounds_the_log_until_it_ends(
    spark: SparkSession, broker: KafkaBroker, prefix: str
) -> None:
    topic = topic_of(broker, prefix, 2)
    producer = transactional(broker)
    producer.begin_transaction()
    producer.produce(topic, value="open")
    producer.flush(30)
    produce(broker, topic, 1)
    kafka = source(spark, broker, prefix)
    assert kafka.watermarks([topic])[TopicPartition(topic, 0)].high == 2
    careless = source(spark, broker, prefix, settings={"isolation.level": "read_uncommitted"})
    assert careless.watermarks([topic])[TopicPartition(topic, 0)].high == 4
    behind = "up to 4 are wanted, but the log ends at 2.*deleted and made again"
    with pytest.raises(DataError, match=behind):
        kafka.read([OffsetRange(topic, 0, 0, 4)])
    producer.commit_transaction(30)
    assert marks_once_ended(kafka, topic, 5).high == 5
    assert kafka.read([OffsetRange(topic, 0, 0, 5)]).count() == 4


def test_range_removed_by_retention_stops_with_topic_partition_and_offset(
    spark: SparkSession, broker: KafkaBroker, prefix: str
) -> None:
    topic = f"{prefix}.a"
    broker.create_topics({topic: 2})
    produce(broker, topic, 10, partition=1)
    kafka = source(spark, broker, prefix)
    planned = kafka.read([OffsetRange(topic, 1, 2, 10)])
    broker.delete_records(topic, 1, before=6)
    named = rf"'{topic}', partition 1: offset 2 .* earliest there is 6.*retention\.ms"
    with pytest.raises(DataError, match=named):
        kafka.read([OffsetRange(topic, 1, 2, 10)])
    # Removed after the plan was made: the action itself must fail, and be explained.
    with pytest.raises(Exception, match="Cannot fetch offset 2") as late:
        planned.collect()
    explained = data_loss_error(late.value, kafka)
    assert explained is not None
    with pytest.raises(DataError, match=named):
        raise explained
    assert kafka.read([OffsetRange(topic, 1, 6, 10)]).count() == 4
    assert data_loss_error(ValueError("another fault"), kafka) is None


def test_topic_pattern_selects_by_whole_names(
    spark: SparkSession, broker: KafkaBroker, prefix: str
) -> None:
    names = [f"{prefix}{end}" for end in ("", ".public.a", ".public.b", ".x.a", ".transaction")]
    broker.create_topics(dict.fromkeys(names, 1))
    assert source(spark, broker, prefix).topics() == tuple(sorted(names[1:4]))
    pattern = rf"{prefix}\.public\.\w"
    assert source(spark, broker, prefix, pattern).topics() == tuple(sorted(names[1:3]))


def test_headers_nulls_and_bytes_survive(
    spark: SparkSession, broker: KafkaBroker, prefix: str, tmp_path: Path
) -> None:
    write_topic(
        tmp_path,
        "a",
        [
            line(0, 0, {"b64": "AAECgP8="}, None, h=[["n", "1"], ["n", None]]),
            line(0, 1, None, {"b64": "/w=="}),
        ],
    )
    replay(tmp_path, broker.bootstrap, rename=f"{prefix}.")
    frame = source(spark, broker, prefix).read([OffsetRange(f"{prefix}.a", 0, 0, 2)])
    first, second = frame.orderBy("offset").collect()
    assert (first.key, bytes(first.value)) == (None, b"\0\1\2\x80\xff")
    assert [(h.key, h.value and bytes(h.value)) for h in first.headers] == [
        ("n", b"1"),
        ("n", None),
    ]
    assert first.timestamp.timestamp() == 1.0
    assert (bytes(second.key), second.value) == (b"\xff", None)
    assert not second.headers


def test_missing_topic_names_the_nearest_one(
    spark: SparkSession, broker: KafkaBroker, prefix: str
) -> None:
    broker.create_topics({f"{prefix}.public.orders": 1})
    nearest = rf"'{prefix}\.public\.order' does not exist.*nearest: '{prefix}\.public\.orders'"
    with pytest.raises(UnavailableError, match=nearest):
        source(spark, broker, prefix, listed=(f"{prefix}.public.order",)).topics()
    with pytest.raises(UnavailableError, match=nearest):
        source(spark, broker, prefix).watermarks([f"{prefix}.public.order"])


def test_broker_that_is_down_is_named(spark: SparkSession) -> None:
    settings = {
        "bootstrap.servers": "127.0.0.1:1",
        "default.api.timeout.ms": "1000",
        "sasl.jaas.config": "x.PlainLoginModule required username='u' password='hush-hush';",
    }
    with pytest.raises(UnavailableError, match=r"bootstrap\.servers=127\.0\.0\.1:1") as down:
        KafkaSource(spark, settings, TopicNames("shop")).topics()
    assert "hush-hush" not in str(down.value)


def test_settings_by_which_topics_lose_records_are_a_risk(
    spark: SparkSession, broker: KafkaBroker, prefix: str
) -> None:
    settings = {
        f"{prefix}.kept": {"retention.ms": "-1"},
        f"{prefix}.short": {"retention.ms": "3600000"},
        f"{prefix}.compact": {"cleanup.policy": "compact", "retention.ms": "1000"},
    }
    client = admin.AdminClient({"bootstrap.servers": broker.bootstrap})
    new = [NEW_TOPIC(topic, num_partitions=1, config=config) for topic, config in settings.items()]
    for created in client.create_topics(new).values():
        created.result()
    with closing(source(spark, broker, prefix)) as opened:
        risks = opened.risks(sorted(settings))
    assert [risk.partition(":")[0] for risk in risks] == [
        f"{prefix}.compact is compacted",
        f"{prefix}.short keeps records for 1 hours only (retention.ms)",
    ]


def test_login_of_the_java_client_serves_both_clients(
    spark: SparkSession, broker: KafkaBroker, prefix: str
) -> None:
    topic = topic_of(broker, prefix, 3)
    kafka = KafkaSource(spark, login(broker, PASSWORD), TopicNames(prefix))
    assert kafka.topics() == (topic,)
    assert kafka.read([OffsetRange(topic, 0, 1, 3)]).count() == 2


@pytest.mark.soak
def test_refused_login_is_reported_at_once_and_without_the_password(
    spark: SparkSession, broker: KafkaBroker, prefix: str
) -> None:
    began = time.monotonic()
    with pytest.raises(AccessError, match="Check the login settings") as refused:
        KafkaSource(spark, login(broker, "wrong-password"), TopicNames(prefix)).topics()
    assert time.monotonic() - began < 25
    assert "wrong-password" not in str(refused.value)


@pytest.mark.soak
def test_broker_that_was_killed_is_waited_for(
    spark: SparkSession, other: KafkaBroker, prefix: str
) -> None:
    topic = topic_of(other, prefix, 3)
    kafka = source(spark, other, prefix)
    bounds = kafka.watermarks([topic])
    other.kill()
    other.start()
    assert kafka.watermarks([topic]) == bounds
    assert kafka.read([OffsetRange(topic, 0, 0, 3)]).count() == 3


def test_missing_client_package_names_what_to_install(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = builtins.__import__

    def without_client(name: str, *others: Any, **more: Any) -> Any:
        if name.startswith("confluent_kafka"):
            message = f"No module named {name!r}"
            raise ImportError(message)
        return plain(name, *others, **more)

    monkeypatch.delitem(sys.modules, "lakeingest.source.broker", raising=False)
    monkeypatch.setattr(builtins, "__import__", without_client)
    with pytest.raises(UnavailableError, match=r"pip install 'lakeingest\[kafka\]'"):
        KafkaSource(spark, {"bootstrap.servers": "x:1"}, TopicNames("shop"))
