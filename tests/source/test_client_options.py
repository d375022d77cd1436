from __future__ import annotations

import logging

import pytest

from lakeingest.errors import ConfigError
from lakeingest.source.client_options import ClientOptions, client_options

SERVERS = {"bootstrap.servers": "kafka:9092"}
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def options(**settings: str) -> ClientOptions:
    return client_options(SERVERS | {k.replace("_", "."): v for k, v in settings.items()})


def test_reader_sees_committed_records_and_does_not_wait_for_more() -> None:
    kafka = options()
    assert kafka.reader["isolation.level"] == "read_committed"
    assert kafka.reader["fetch.max.wait.ms"] == "5"
    assert kafka.reader["allow.auto.create.topics"] == "false"
    assert kafka.read_committed


def test_settings_of_the_user_win_over_defaults() -> None:
    kafka = options(fetch_max_wait_ms="100", isolation_level="read_uncommitted")
    assert kafka.reader["fetch.max.wait.ms"] == "100"
    assert not kafka.read_committed


def test_tuning_of_the_fetch_reaches_spark_only() -> None:
    kafka = options(max_poll_records="10", client_id="me")
    assert kafka.reader["max.poll.records"] == "10"
    assert dict(kafka.driver) == {**SERVERS, "client.id": "me"}


def test_positions_and_deserialisers_are_ours_and_said_so(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        kafka = options(group_id="g", auto_offset_reset="earliest", key_deserializer="x")
    assert not {"group.id", "auto.offset.reset", "key.deserializer"} & kafka.reader.keys()
    assert "auto.offset.reset" in caplog.text


@pytest.mark.parametrize("module", [PLAIN, SCRAM])
def test_jaas_line_becomes_user_and_password(module: str) -> None:
    jaas = f"""{module} required\n username="u s" password='a"b;c\\\\d' ;"""
    kafka = options(sasl_jaas_config=jaas, sasl_mechanism="X", security_protocol="SASL_SSL")
    assert kafka.driver["sasl.username"] == "u s"
    assert kafka.driver["sasl.password"] == 'a"b;c\\d'
    assert kafka.driver["sasl.mechanism"] == "X"
    assert kafka.driver["security.protocol"] == "SASL_SSL"
    assert "sasl.jaas.config" not in kafka.driver
    assert kafka.reader["sasl.jaas.config"] == jaas


def test_user_and_password_become_a_jaas_line_that_reads_back() -> None:
    kafka = options(sasl_username="u", sasl_password='p"\\; x', sasl_mechanisms="SCRAM-SHA-512")
    assert kafka.reader["sasl.mechanism"] == "SCRAM-SHA-512"
    assert not {"sasl.username", "sasl.password", "sasl.mechanisms"} & kafka.reader.keys()
    again = options(sasl_jaas_config=kafka.reader["sasl.jaas.config"])
    assert again.driver["sasl.password"] == 'p"\\; x'
    assert kafka.reader["sasl.jaas.config"].startswith(SCRAM)


def test_login_without_an_equal_on_the_driver_is_refused_without_its_secret() -> None:
    with pytest.raises(ConfigError, match="IAMLoginModule") as refused:
        options(sasl_jaas_config='software.amazon.msk.auth.iam.IAMLoginModule required x="hush";')
    assert "hush" not in str(refused.value)


def test_unreadable_jaas_line_is_refused_without_its_text() -> None:
    with pytest.raises(ConfigError, match="unreadable") as refused:
        options(sasl_jaas_config="hush")
    assert "hush" not in str(refused.value)


def test_pem_stores_serve_both_clients() -> None:
    kafka = options(
        ssl_truststore_type="PEM",
        ssl_truststore_location="/ca.pem",
        ssl_keystore_type="PEM",
        ssl_keystore_location="/me.pem",
    )
    assert kafka.driver["ssl.ca.location"] == "/ca.pem"
    assert kafka.driver["ssl.key.location"] == kafka.driver["ssl.certificate.location"] == "/me.pem"
    assert not {k for k in kafka.driver if "store" in k}
    derived = options(ssl_ca_location="/ca.pem")
    assert derived.reader["ssl.truststore.location"] == "/ca.pem"
    assert derived.reader["ssl.truststore.type"] == "PEM"


def test_jks_store_is_refused_with_the_way_out() -> None:
    with pytest.raises(ConfigError, match=r"type JKS.*'ssl\.truststore\.type=PEM'.*ssl\.ca\.locat"):
        options(ssl_truststore_location="/trust.jks", ssl_truststore_password="hush")
    kafka = options(ssl_truststore_location="/trust.jks", ssl_ca_location="/ca.pem")
    assert kafka.reader["ssl.truststore.location"] == "/trust.jks"
    assert kafka.driver["ssl.ca.location"] == "/ca.pem"


def test_unchecked_host_name_is_written_differently_for_the_driver() -> None:
    kafka = options(ssl_endpoint_identification_algorithm="")
    assert kafka.reader["ssl.endpoint.identification.algorithm"] == ""
    assert kafka.driver["ssl.endpoint.identification.algorithm"] == "none"


def test_missing_servers_and_wrong_values_name_their_key() -> None:
    with pytest.raises(ConfigError, match="bootstrap.servers"):
        client_options({})
    with pytest.raises(ConfigError, match=r"isolation\.level"):
        options(isolation_level="committed")
    with pytest.raises(ConfigError, match=r"default\.api\.timeout\.ms"):
        options(default_api_timeout_ms="1s")


def test_secrets_are_neither_in_repr_nor_in_redacted_text() -> None:
    kafka = options(sasl_jaas_config=f'{PLAIN} required username="u" password="hush";')
    assert "hush" not in repr(kafka)
    assert kafka.redact("said: hush!") == "said: ***!"
