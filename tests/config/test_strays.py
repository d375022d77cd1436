"""Keys that are nobody's: misspelt ones, and what got among the keys by mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakeingest.config import load_config
from lakeingest.config.spelling import misspelt, names_of
from lakeingest.config.streamer.settings import HUDI_NAMES
from lakeingest.source.client_options import NOT_THE_USERS, READER_DEFAULTS
from tests.config.settings import HUDI_STREAMER, KAFKA, RECORDED, problem, without

HUDI = {**KAFKA, "lakeingest.target.format": "hudi"}


@pytest.mark.parametrize("settings", [RECORDED, KAFKA], ids=["recorded", "kafka"])
@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("sasl.jass.config", "sasl.jaas.config"),
        ("sasl.mechansm", "sasl.mechanism"),
        ("SSL.truststore.Location", "ssl.truststore.location"),
        ("max_poll_records", "max.poll.records"),
        ("boostrap.servers", "bootstrap.servers"),
        ("kafka.bootstrap.servers", "bootstrap.servers"),
        ("consumer.max.poll.records", "max.poll.records"),
        ("schema.registy.url", "schema.registry.url"),
        ("hodie.base.path", "hoodie.base.path"),
    ],
)
def test_a_misspelt_key_of_a_client_is_refused_with_the_one_that_was_meant(
    settings: dict[str, str], written: str, meant: str
) -> None:
    assert problem({**settings, written: "hunter2"}) == (
        f"the given mapping: unknown key {written}; did you mean {meant}?"
    )


def test_misspelt_brokers_are_not_called_missing_as_well() -> None:
    for key in ("", "lakeingest.source.kind"):
        settings = without(KAFKA, "bootstrap.servers", key)
        assert problem({**settings, "boostrap.servers": "broker:9092"}) == (
            "the given mapping: unknown key boostrap.servers; did you mean bootstrap.servers?"
        )


def test_what_is_like_no_key_is_named_where_the_source_is_missing() -> None:
    settings = without(KAFKA, "bootstrap.servers", "lakeingest.source.kind")
    said = problem({**settings, "brokers": "broker:9092"})
    assert "missing: lakeingest.source.path (or bootstrap.servers for Kafka)" in said
    assert "unknown, here and to Kafka's clients: brokers" in said


def test_a_key_that_no_client_knows_is_handed_on_with_a_warning() -> None:
    config = load_config({**KAFKA, "our.interceptor.audit": "1", "fetch.max.bytes": "1000"})
    assert config.source.kafka_client_options()["our.interceptor.audit"] == "1"
    assert config.warnings == (
        "unknown to Kafka's clients, handed on as it is: our.interceptor.audit",
    )


def test_no_known_name_is_taken_for_another_one() -> None:
    assert NOT_THE_USERS | READER_DEFAULTS.keys() <= names_of("kafka")
    (warning,) = load_config({**RECORDED, **dict.fromkeys(names_of("kafka"), "1")}).warnings
    assert warning.startswith("without effect on a recorded source")
    of_hudi = {name: "1" for name in names_of("hudi") - HUDI_NAMES if not name.endswith(".class")}
    of_many_tables, others = load_config({**RECORDED, **of_hudi}).warnings
    assert "did you mean" not in of_many_tables + others
    # Of a producer, in a file that both share.
    assert load_config({**KAFKA, "key.serializer": "x", "acks": "all"}).warnings == ()


def test_a_short_name_has_no_other_within_two_letters() -> None:
    assert misspelt("asks", {"acks"}) == "acks"
    assert misspelt("tasks", {"acks"}) is None
    assert misspelt("sasl.mechansm", {"sasl.mechanisms", "sasl.mechanism"}) == "sasl.mechanism"


@pytest.mark.parametrize(
    ("settings", "written", "said"),
    [
        (
            HUDI,
            "hoodie.bucket.index.num.bukets",
            "unknown to Hudi, handed on as it is: hoodie.bucket.index.num.bukets; did you mean "
            "hoodie.bucket.index.num.buckets?",
        ),
        (
            KAFKA,
            "hoodie.deltastreamer.source.kafka.topics",
            "without effect here: hoodie.deltastreamer.source.kafka.topics; did you mean "
            "hoodie.deltastreamer.source.kafka.topic?",
        ),
    ],
)
def test_a_misspelt_key_of_hudis_is_a_warning_with_the_one_that_was_meant(
    settings: dict[str, str], written: str, said: str
) -> None:
    assert load_config({**settings, written: "8"}).warnings == (said,)


def test_a_misspelt_key_of_hudis_is_named_where_what_it_says_is_missing() -> None:
    topic = "hoodie.streamer.source.kafka.topic"
    said = problem({**without(HUDI_STREAMER, topic), f"{topic}s": HUDI_STREAMER[topic]})
    assert "missing: lakeingest.source.topic.prefix" in said
    assert f"did you mean {topic}?" in said


@pytest.mark.parametrize("blanks", [" ", "\t", "  \r"])
def test_a_line_that_blanks_keep_from_going_on_is_refused_by_its_number(
    tmp_path: Path, blanks: str
) -> None:
    file = tmp_path / "shop.properties"
    lines = [f"{key}={text}" for key, text in RECORDED.items()]
    lines += ["# a comment \\ ", f"lakeingest.source.topics=shop.public.orders,\\{blanks}"]
    file.write_bytes("\n".join([*lines, "  shop.public.items", ""]).encode())
    said = problem(file)
    assert f"line {len(lines)}: blanks behind the backslash" in said
    assert "shop.public.items" not in said  # Nobody wrote such a key.


def test_a_topic_among_the_keys_is_refused_with_a_hint_at_the_line_before() -> None:
    said = problem({**KAFKA, "shop.public.items": ""})
    assert "shop.public.items is a key here" in said
    assert "no blank behind it" in said


@pytest.mark.parametrize("text", ["", ",", " , \\"])
def test_a_line_of_a_list_is_a_topic_by_what_is_not_behind_it(text: str) -> None:
    assert "is a key here" in problem({**KAFKA, "shop.public.items,": text})


def test_a_clients_key_that_begins_like_a_topic_is_handed_on_with_its_value() -> None:
    config = load_config({**KAFKA, "shop.public.audit": "on"})
    assert config.source.kafka_client_options()["shop.public.audit"] == "on"
    assert config.warnings == ("unknown to Kafka's clients, handed on as it is: shop.public.audit",)
