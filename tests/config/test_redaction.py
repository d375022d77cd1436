from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lakeingest.config import load_config, redaction
from lakeingest.config.redaction import REDACTED, is_secret_key, scrub, spells_secret
from lakeingest.errors import ConfigError
from lakeingest.sink.hudi.options import HudiSettings
from tests.config.settings import KAFKA, RECORDED

JAAS = 'org.apache.kafka.ScramLoginModule required username="app" password="hunter2-jaas";'


@pytest.mark.parametrize("shown", [repr, str])
def test_secrets_are_in_no_representation(
    shown: Callable[[object], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_LAKE", "s3://hidden-bucket/shop")
    monkeypatch.setenv("SHOP_PREFIX", "hiddenprefix")
    config = load_config(
        {
            **KAFKA,
            "lakeingest.target.path": "${env:SHOP_LAKE}",
            "lakeingest.source.topic.prefix": "${env:SHOP_PREFIX}",
            "lakeingest.table.public.t.key": "${env:SHOP_PREFIX}",
            "sasl.jaas.config": JAAS,
            "ssl.keystore.password": "hunter2-store",
        }
    )
    assert config.target.path == "s3://hidden-bucket/shop"
    assert config.source.kafka_client_options()["sasl.jaas.config"] == JAAS
    for part in (config, config.source, config.target, config.tables, config.source.kafka_options):
        assert "hidden" not in shown(part)
        assert "hunter2" not in shown(part)
    assert REDACTED in repr(config.target)


HUDIS = "hoodie.streamer.schemaprovider.registry.url"
BASE = {**KAFKA, "lakeingest.target.format": "hudi"}
AVRO = {**BASE, "schema.registry.url": "http://registry:8081"}
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required username=app password="
PLACES = {
    "jaas-double": (BASE, "sasl.jaas.config", f'{LOGIN}"hunter2-1";', "hunter2-1"),
    "jaas-single": (BASE, "sasl.jaas.config", f"{LOGIN}'hunter2-2';", "hunter2-2"),
    "jaas-bare": (BASE, "sasl.jaas.config", f"{LOGIN}hunter2-3;", "hunter2-3"),
    "jaas-escaped": (BASE, "sasl.jaas.config", f'{LOGIN}"hunter2\\"-4";', 'hunter2"-4'),
    "jaas-client": (BASE, "sasl.jaas.config", "x.Y required clientSecret=hunter2-5;", "hunter2-5"),
    "kafka": (BASE, "sasl.password", "hunter2-6", "hunter2-6"),
    "store": (BASE, "ssl.truststore.password", "hunter2-7", "hunter2-7"),
    "lock": (BASE, "hoodie.write.lock.zookeeper.password", "hunter2-8", "hunter2-8"),
    "callback": (BASE, "hoodie.metadata.callback.api.key", "hunter2-9", "hunter2-9"),
    "registry-user": (AVRO, "basic.auth.user.info", "app:hunter2-10", "hunter2-10"),
    "registry-token": (AVRO, "bearer.auth.token", "hunter2-11", "hunter2-11"),
    "registry-key": (AVRO, "schema.registry.ssl.key.password", "hunter2-12", "hunter2-12"),
    "registry-url": (BASE, "schema.registry.url", "http://u:hunter2-13@r", "hunter2-13"),
    "hudis-registry": (BASE, HUDIS, "http://u:hunter2-14@r/subjects/x", "hunter2-14"),
}
"""Settings, a key with a secret value besides, and the secret in it."""


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("by", ["mapping", "override", "file", "env", "secret file"])
def test_a_secret_is_shown_nowhere_wherever_it_stands(
    place: str, by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, key, value, secret = PLACES[place]
    monkeypatch.setattr(redaction, "_secrets", set())
    (tmp_path / "secret").write_text(value, "utf-8")
    monkeypatch.setenv("LAKEINGEST_TEST_SECRET", value)
    if key == "schema.registry.ssl.key.password":
        settings = {**settings, "schema.registry.ssl.certificate.location": "me.pem"}
    form = {"env": "${env:LAKEINGEST_TEST_SECRET}", "secret file": f"${{file:{tmp_path}/secret}}"}
    given = {**settings} if by == "override" else {**settings, key: form.get(by, value)}
    file = tmp_path / "shop.properties"
    lines = [f"{name}={said}".replace("\\", "\\\\") for name, said in given.items()]
    file.write_text("\n".join(lines), "utf-8")
    source = file if by == "file" else given
    overrides = [f"{key}={value}"] if by == "override" else []
    config = load_config(source, overrides)
    parts = (config.source, config.target, config.tables, config.warnings)
    options = (config.source.kafka_options, config.source.registry_options)
    for part in (config, *parts, *options, config.target.hudi_options):
        assert "hunter2" not in repr(part)
        assert "hunter2" not in str(part)
    assert "hunter2" not in scrub(f"refused: '{secret}' is wrong")
    with pytest.raises(ConfigError) as error:
        load_config(source, [*overrides, "lakeingest.deletes=x", "lakeingest.unknown=1"])
    assert "hunter2" not in str(error.value)


OURS = {
    "lakeingest.pipeline.name": "hunter2",
    "lakeingest.source.topics": "shop.hunter2.orders",
    "lakeingest.source.topic.prefix": "hunter2",
    "lakeingest.transaction.topic": "hunter2",
    "lakeingest.target.path": "s3://hunter2/lake",
    "lakeingest.metadata.prefix": "hunter2",
    "lakeingest.table.public.orders.schema": "hunter2 INT",
    "lakeingest.table.public.orders.key": "hunter2",
    "lakeingest.table.public.orders.path": "hunter2",
    "lakeingest.transaction.filtered.collections": "public.hunter2",
}


@pytest.mark.parametrize("key", OURS)
def test_a_value_of_ours_from_a_reference_is_shown_nowhere(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEINGEST_TEST_SECRET", OURS[key])
    config = load_config({**RECORDED, key: "${env:LAKEINGEST_TEST_SECRET}"})
    assert "hunter2" not in repr(config)
    assert "hunter2" not in str(config)


def test_what_a_login_names_besides_its_password_stays_readable() -> None:
    options = "useKeyTab=true username='orders' password='hunter2-shown' serviceName=kafka"
    load_config({**KAFKA, "sasl.jaas.config": f"x.LoginModule required {options};"})
    said = "kafka: user orders may not log in: true"
    assert scrub(said) == said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("debug=\"true\" renewTGT='False'", "true and False"),
        ('awsProfileName="default" awsStsRegion="eu-west-1"', "the default region is eu-west-1"),
        ('awsRoleArn="arn:aws:iam::1:role/x"', "arn:aws:iam::1:role/x may not read"),
        (
            'oauth.client.id="orders" oauth.scope="kafka" oauth.token.endpoint.uri="https://sso/t"',
            "client orders of scope kafka at https://sso/t",
        ),
        ('ticketCache="/tmp/krb5cc" doNotPrompt="yes please"', "yes please, /tmp/krb5cc"),
    ],
)
def test_a_login_that_is_no_password_stays_readable_in_quotes_too(
    options: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redaction, "_secrets", set())
    load_config({**KAFKA, "sasl.jaas.config": f"x.LoginModule required {options};"})
    assert scrub(said) == said


@pytest.mark.parametrize(
    "option",
    [
        "awsRoleSecretAccessKey",
        "awsRoleSessionToken",
        "awsRoleAccessKeyId",
        "oauth.client.secret",
        "oauth.access.token",
    ],
)
def test_a_login_by_a_token_is_blanked_out(option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_secrets", set())
    load_config({**KAFKA, "sasl.jaas.config": f'x.LoginModule required {option}="hunter2";'})
    assert "hunter2" not in scrub("refused: hunter2")


def test_options_of_hudis_writer_are_in_no_representation() -> None:
    given = {"hoodie.write.lock.zookeeper.password": "hunter2"}
    assert "hunter2" not in repr(HudiSettings(user_options=given))


def test_a_referenced_value_that_does_not_fit_is_not_in_the_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SHOP_DELETES", "hunter2-deletes")
    with pytest.raises(ConfigError, match="its value is not shown") as error:
        load_config({**RECORDED, "lakeingest.deletes": "${env:SHOP_DELETES}"})
    assert "hunter2" not in str(error.value)
    assert error.value.__cause__ is None


def test_resolved_secrets_are_scrubbed_from_messages_of_others() -> None:
    load_config({**KAFKA, "sasl.jaas.config": JAAS, "ssl.key.password": "hunter2-scrubbed"})
    said = scrub(f"login failed: hunter2-jaas with {JAAS}; and hunter2-scrubbed")
    assert "hunter2" not in said
    assert said.startswith("login failed: ")


@pytest.mark.parametrize(
    "key",
    [
        "sasl.jaas.config",
        "ssl.key.password",
        "sasl.password",
        "ssl.keystore.key",
        "ssl.key.pem",
        "x.token",
        "hoodie.write.lock.zookeeper.password",
    ],
)
def test_keys_that_name_a_secret_are_known(key: str) -> None:
    assert is_secret_key(key)


LOGIN = "PlainLoginModule required username="


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("sasl.password", "hunter2"),
        ("sasl.password", "${env:A}2"),
        ("schema.registry.basic.auth.user.info", "app:hunter2"),
        ("schema.registry.basic.auth.user.info", "${env:A}:hunter2"),
        ("sasl.jaas.config", f'{LOGIN}"app" password="hunter2";'),
        ("sasl.jaas.config", f'{LOGIN}"${{env:A}}" password=hunter2;'),
        ("schema.registry.url", "https://app:hunter2@registry:8081"),
    ],
)
def test_a_line_that_shows_a_secret_beside_what_it_names_is_known(key: str, text: str) -> None:
    assert spells_secret(key, text)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("sasl.password", "${env:A}"),
        ("schema.registry.basic.auth.user.info", "app:${env:A}"),
        ("schema.registry.basic.auth.user.info", "${file:/run/a}"),
        ("sasl.jaas.config", f'{LOGIN}"app" password="${{env:A}}";'),
        ("sasl.jaas.config", "${env:A}"),
        ("bootstrap.servers", "a:1"),
        ("schema.registry.url", "https://app:${env:A}@registry:8081"),
        ("schema.registry.url", "http://registry:8081/a@b"),
    ],
)
def test_a_line_that_only_names_a_secret_may_be_written(key: str, text: str) -> None:
    assert not spells_secret(key, text)


LOCK_KEY = "hoodie.write.lock.zookeeper.lock_key"


@pytest.mark.parametrize(
    "key", ["bootstrap.servers", "security.protocol", "key.deserializer", LOCK_KEY]
)
def test_ordinary_keys_are_not_taken_for_secrets(key: str) -> None:
    assert not is_secret_key(key)
