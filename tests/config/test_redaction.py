from __future__ import annotations

from collections.abc import Callable

import pytest

from lakeingest.config import load_config
from lakeingest.config.redaction import REDACTED, is_secret_key, scrub
from lakeingest.errors import ConfigError
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
    "key", ["sasl.jaas.config", "ssl.key.password", "sasl.password", "ssl.keystore.key", "x.token"]
)
def test_keys_that_name_a_secret_are_known(key: str) -> None:
    assert is_secret_key(key)


@pytest.mark.parametrize("key", ["bootstrap.servers", "security.protocol", "key.deserializer"])
def test_ordinary_keys_are_not_taken_for_secrets(key: str) -> None:
    assert not is_secret_key(key)
