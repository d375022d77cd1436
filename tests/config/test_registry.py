from __future__ import annotations

import pytest
from pydantic import SecretStr, ValidationError

from lakeingest.config import SourceConfig, load_config
from lakeingest.config.kafka.registry import NATIVE
from lakeingest.config.redaction import scrub
from lakeingest.config.reference import reference
from tests.config.settings import HUDI_STREAMER, KAFKA, RECORDED, problem

URL = "schema.registry.url"
AVRO = {**KAFKA, URL: "http://registry:8081"}
USER = "schema.registry.basic.auth.user.info"
SOURCE = "schema.registry.basic.auth.credentials.source"
SSL = "schema.registry.ssl."


def options(settings: dict[str, str]) -> dict[str, str]:
    registry_options = load_config(settings).source.registry_options
    return {key: value.get_secret_value() for key, value in registry_options.items()}


def test_a_registry_means_avro_and_none_means_json() -> None:
    config = load_config(AVRO)
    assert config.source.format == "avro"
    assert (config.source.registry_timeout_seconds, config.source.registry_retries) == (10, 5)
    assert config.warnings == ()
    assert load_config(KAFKA).source.format == "json"
    assert load_config(RECORDED).source.format == "json"


def test_patience_is_set_by_our_keys() -> None:
    more = {"lakeingest.registry.timeout.seconds": "3", "lakeingest.registry.retries": "0"}
    source = load_config({**AVRO, **more}).source
    assert (source.registry_timeout_seconds, source.registry_retries) == (3, 0)
    more["lakeingest.registry.timeout.seconds"] = "0"
    assert "lakeingest.registry.timeout.seconds=0" in problem({**AVRO, **more})


def test_the_format_wins_over_what_a_registry_suggests() -> None:
    config = load_config({**AVRO, "lakeingest.source.format": "json"})
    assert (config.source.format, config.source.registry_options) == ("json", {})
    assert config.warnings == (f"without effect on a source in JSON: {URL}",)


def test_avro_from_kafka_without_a_registry_is_missing_its_url() -> None:
    assert f"missing: {URL}" in problem({**KAFKA, "lakeingest.source.format": "avro"})
    source = load_config(KAFKA).source.model_dump() | {"format": "avro"}
    with pytest.raises(ValidationError, match=r"schema\.registry\.url"):
        SourceConfig.model_validate(source)


def test_a_recording_has_its_schemas_and_asks_no_registry() -> None:
    config = load_config({**RECORDED, URL: "${env:LAKEINGEST_TEST_NOT_SET}"})
    assert (config.source.format, config.source.registry_options) == ("avro", {})
    (warning,) = config.warnings
    assert "registry.json" in warning
    assert URL in warning


def test_native_settings_go_to_the_client_and_not_to_kafka() -> None:
    given = {
        f"{SSL}ca.location": "ca.pem",
        f"{SSL}certificate.location": "me.pem",
        f"{SSL}key.location": "key.pem",
        f"{SSL}key.password": "hunter2-key",
        USER: "app:hunter2-user",
    }
    config = load_config({**AVRO, **given, "basic.auth.credentials.source": "USER_INFO"})
    assert options({**AVRO, **given}) == {**given, URL: "http://registry:8081"}
    assert config.source.kafka_options.keys() == {"bootstrap.servers", "isolation.level"}
    assert config.warnings == ()


def test_several_addresses_are_kept_in_order() -> None:
    registry_options = options({**AVRO, URL: "http://a:1/ , https://b/apis/ccompat/v7,"})
    assert registry_options[URL] == "http://a:1,https://b/apis/ccompat/v7"


@pytest.mark.parametrize(
    "url", ["registry:8081", "ftp://registry", "http://", "http://u:hunter2@h:x", "mock://a"]
)
def test_what_is_no_address_is_refused_without_repeating_it(url: str) -> None:
    assert f"{URL}: every address begins with http" in problem({**AVRO, URL: url})


@pytest.mark.parametrize("name", [USER, USER.removeprefix("schema.registry.")])
def test_user_and_password_are_read_by_both_of_javas_names(name: str) -> None:
    assert options({**AVRO, name: "app:hunter2:x"})[USER] == "app:hunter2:x"


def test_the_longer_name_wins() -> None:
    settings = {**AVRO, "basic.auth.user.info": "old:hunter2", USER: "app:hunter2"}
    assert options(settings)[USER] == "app:hunter2"
    assert load_config(settings).warnings == (f"basic.auth.user.info has no effect: {USER} is set",)


def test_credentials_in_an_address_become_the_login_and_are_seen_nowhere() -> None:
    settings = {**AVRO, URL: "http://app:hunter2%2Durl@a,http://app:hunter2%2Durl@b"}
    assert options(settings) == {URL: "http://a,http://b", USER: "app:hunter2-url"}
    config = load_config(settings)
    for shown in (repr(config), str(config), str(config.source.registry_options)):
        assert "hunter2" not in shown
    for said in ("app:hunter2-url", "hunter2-url", "hunter2%2Durl"):
        assert scrub(f"login failed for {said}") == f"login failed for {'*' * 10}"


def test_a_model_refuses_credentials_in_an_address() -> None:
    source = load_config(AVRO).source.model_dump()
    source["registry_options"] = {URL: SecretStr("http://a,http://u:hunter2@b")}
    with pytest.raises(ValidationError, match=r"basic\.auth\.user\.info") as error:
        SourceConfig.model_validate(source)
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({SOURCE: "USER_INFO"}, f"missing: {USER}"),
        ({SOURCE: "hunter2"}, "SASL_INHERIT"),
        ({USER: "hunter2"}, "user:password"),
        ({USER: "a:hunter2", URL: "http://b:hunter2@r"}, "keep one"),
        ({URL: "http://a:hunter2@r,http://b:hunter2@s"}, "different users"),
        ({"bearer.auth.credentials.source": "OAUTHBEARER"}, "only STATIC_TOKEN"),
        ({"bearer.auth.credentials.source": "STATIC_TOKEN"}, "missing: schema.registry.bearer"),
        ({"bearer.auth.token": "hunter2", USER: "a:hunter2"}, "exclude each other"),
        ({"bearer.auth.token": "hunter2é"}, "printable ASCII"),
        ({f"{SSL}key.location": "key.pem"}, f"needs {SSL}certificate.location"),
        ({USER: "${env:LAKEINGEST_TEST_NOT_SET}"}, "LAKEINGEST_TEST_NOT_SET is not set"),
        ({f"{SSL}ca.location": " "}, "has no value"),
    ],
)
def test_a_login_that_cannot_be_right_is_refused(more: dict[str, str], said: str) -> None:
    assert said in problem({**AVRO, **more})


def test_the_source_of_the_login_decides_between_two() -> None:
    both = {**AVRO, URL: "http://b:hunter2@r", USER: "a:hunter2"}
    assert options({**both, SOURCE: "USER_INFO"})[USER] == "a:hunter2"
    assert options({**both, SOURCE: "URL"})[USER] == "b:hunter2"
    (warning,) = load_config({**both, SOURCE: "URL"}).warnings
    assert f"{USER} has no effect" in warning


def test_an_inherited_login_is_left_to_whoever_opens_the_registry() -> None:
    assert options({**AVRO, SOURCE: "sasl_inherit"})[SOURCE] == "SASL_INHERIT"


def test_a_token_is_a_login() -> None:
    settings = {**AVRO, "bearer.auth.credentials.source": "STATIC_TOKEN"}
    settings["schema.registry.bearer.auth.token"] = "swordfish"  # Remembered by no other test.
    assert options(settings)["schema.registry.bearer.auth.token"] == "swordfish"
    assert "swordfish" not in scrub("sent swordfish")


@pytest.mark.parametrize("store", ["truststore", "keystore"])
def test_a_java_store_is_refused_with_the_pem_keys_to_use(store: str) -> None:
    instead = {"truststore": "ca.location", "keystore": "key.location"}[store]
    for more in ({}, {f"{SSL}{store}.type": "PKCS12"}):
        said = problem({**AVRO, f"{SSL}{store}.location": "store.jks", **more})
        assert f"{SSL}{store}.location is no PEM file" in said
        assert f"{SSL}{instead}" in said
    pem = {f"{SSL}ca.location": "ca.pem", f"{SSL}certificate.location": "me.pem"}
    load_config({**AVRO, f"{SSL}{store}.location": "store.jks", **pem})


def test_a_store_of_pem_is_translated() -> None:
    stores = {
        f"{SSL}truststore.type": "PEM",
        f"{SSL}truststore.location": "ca.pem",
        f"{SSL}keystore.type": "pem",
        f"{SSL}keystore.location": "me.pem",
    }
    assert options({**AVRO, **stores}) == {
        URL: "http://registry:8081",
        f"{SSL}ca.location": "ca.pem",
        f"{SSL}certificate.location": "me.pem",
        f"{SSL}key.location": "me.pem",
    }


def test_certificates_in_the_file_itself_are_refused_unseen() -> None:
    assert f"{SSL}key.location" in problem({**AVRO, f"{SSL}keystore.key": "-----BEGIN hunter2"})


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("ssl.ca.locaton", "ssl.ca.location"),
        ("basic.auth.userinfo", "basic.auth.user.info"),
        ("ssl.protocol", None),
        ("ssl.truststore.password", None),
        ("max.schemas.per.subject", None),
    ],
)
def test_what_has_no_effect_is_warned_about_with_the_nearest_key(
    written: str, meant: str | None
) -> None:
    (warning,) = load_config({**AVRO, f"schema.registry.{written}": "hunter2"}).warnings
    hint = f"; did you mean schema.registry.{meant}?" if meant else ""
    assert warning == f"without effect here: schema.registry.{written}{hint}"


HUDI = "hoodie.streamer.schemaprovider.registry.url"


@pytest.mark.parametrize("name", [HUDI, HUDI.replace("streamer", "deltastreamer")])
@pytest.mark.parametrize("rest", ["", "/subjects/shop.public.orders-value/versions/latest"])
def test_hudis_registry_is_ours_without_the_subject(name: str, rest: str) -> None:
    settings = {**HUDI_STREAMER, name: f"https://app:hunter2@registry/api{rest}"}
    config = load_config(settings)
    assert (config.source.format, config.warnings) == ("avro", ())
    assert options(settings) == {URL: "https://registry/api", USER: "app:hunter2"}


def test_the_same_registry_named_twice_is_no_warning_and_another_is() -> None:
    settings = {**HUDI_STREAMER, URL: "http://r", HUDI: "http://r/subjects/x/versions/latest"}
    assert load_config(settings).warnings == ()
    settings[HUDI] = "http://other"
    assert options(settings)[URL] == "http://r"
    assert load_config(settings).warnings == (f"{HUDI} has no effect: {URL} is set",)


def test_every_setting_of_the_client_is_in_the_reference_with_its_meaning() -> None:
    printed = reference()
    for name, said in NATIVE.items():
        assert f"| `schema.registry.{name}` | {said} |" in printed
        # More than the words of the name.
        assert {*said.lower().split()} - {*name.split(".")}
