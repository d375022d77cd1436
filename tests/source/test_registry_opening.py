from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from pyspark.sql import SparkSession

from lakeingest.config import SourceConfig
from lakeingest.errors import ConfigError, DataError, UnavailableError
from lakeingest.source import RecordedRegistry, open_registry
from lakeingest.source.registry.contract import Registered, WholeSchemas
from tests.source.http_registry import TYPES, Reply, loopback

LEAF = {"type": "enum", "name": "l.Leaf", "symbols": ["A"]}
MIDDLE = {"type": "record", "name": "m.Middle", "fields": [{"name": "leaf", "type": "l.Leaf"}]}
TOP = {
    "type": "record",
    "name": "t.Top",
    "fields": [{"name": "middle", "type": "m.Middle"}, {"name": "leaf", "type": "l.Leaf"}],
}
ENTRIES: dict[str, Any] = {
    "1": {"schema": LEAF, "references": [], "subjects": [["leaf", 1]]},
    "2": {
        "schema": MIDDLE,
        "references": [{"name": "l.Leaf", "subject": "leaf", "version": 1}],
        "subjects": [["middle", 3]],
    },
    "3": {
        "schema": TOP,
        "references": [{"name": "m.Middle", "subject": "middle", "version": 3}],
        "subjects": [["top-value", 1]],
    },
    "4": {"schema": "message M {}", "schemaType": "PROTOBUF"},
    "5": {"schema": TOP, "references": [{"name": "x", "subject": "gone", "version": 1}]},
}


def source(**more: Any) -> SourceConfig:
    settings = {"connector": "postgresql", "topic_prefix": "shop", "format": "avro", **more}
    return SourceConfig.model_validate(settings)


def kafka(url: str, **registry: str) -> SourceConfig:
    options = {f"basic.auth.{key.replace('_', '.')}": text for key, text in registry.items()}
    jaas = 'org.apache.kafka.PlainLoginModule required username="u" password="p";'
    return source(
        kind="kafka",
        kafka_options={
            "bootstrap.servers": SecretStr("broker:9092"),
            **({"sasl.jaas.config": SecretStr(jaas)} if registry else {}),
        },
        registry_options={
            f"schema.registry.{key}": SecretStr(text)
            for key, text in {"url": url, **options}.items()
        },
    )


def recorded(folder: Path, entries: Any = ENTRIES) -> RecordedRegistry:
    (folder / "registry.json").write_text(json.dumps(entries), "utf-8")
    return RecordedRegistry(str(folder))


def check_top(text: str) -> None:
    middle, leaf = json.loads(text)["fields"]
    assert middle["type"]["fields"][0]["type"]["symbols"] == ["A"]
    assert leaf["type"] == "l.Leaf"


def test_references_of_references_are_found_in_a_recording(tmp_path: Path) -> None:
    registry = recorded(tmp_path)
    registry.check()
    check_top(registry.schema(3))
    assert json.loads(registry.schema(1)) == LEAF


def test_a_schema_is_made_whole_once() -> None:
    ids: list[int] = []

    def by_id(schema_id: int) -> Registered:
        ids.append(schema_id)
        return Registered('"long"')

    schemas = WholeSchemas(by_id, lambda *_: Registered('"int"'))
    assert [schemas.text(schema_id) for schema_id in (1, 2, 1, 2)] == ['"long"'] * 4
    assert ids == [1, 2]


def test_references_of_references_are_asked_of_a_registry_once() -> None:
    def answer(path: str) -> Reply:
        for number, entry in ENTRIES.items():
            subject, version = entry.get("subjects", [["", 0]])[0]
            if path in (f"/schemas/ids/{number}", f"/subjects/{subject}/versions/{version}"):
                more = {"references": entry["references"], "schema": json.dumps(entry["schema"])}
                return Reply(200, json.dumps(more))
        return TYPES

    with loopback(answer) as server:
        registry = open_registry(kafka(server.url))
        assert registry is not None
        check_top(registry.schema(3))
        check_top(registry.schema(3))
        registry.schema(2)
        registry.close()
    assert server.paths == [
        "/schemas/ids/3",
        "/subjects/middle/versions/3",
        "/subjects/leaf/versions/1",
        "/schemas/ids/2",
    ]


@pytest.mark.parametrize(("schema_id", "said"), [(99, "99"), (4, "PROTOBUF"), (5, "gone")])
def test_what_a_recording_lacks_is_an_error_of_the_data(
    tmp_path: Path, schema_id: int, said: str
) -> None:
    with pytest.raises(DataError, match=said):
        recorded(tmp_path).schema(schema_id)


@pytest.mark.parametrize("entries", [[], {"1": 2}, "text"])
def test_a_file_that_holds_no_schemas_says_so(tmp_path: Path, entries: Any) -> None:
    with pytest.raises(UnavailableError, match="holds no schemas"):
        recorded(tmp_path, entries).check()


def test_a_recording_is_read_by_the_session_that_reads_its_topics(
    tmp_path: Path, spark: SparkSession
) -> None:
    recorded(tmp_path)
    registry = open_registry(source(kind="recorded", path=tmp_path.as_uri()), spark)
    assert isinstance(registry, RecordedRegistry)
    check_top(registry.schema(3))
    absent = RecordedRegistry(f"{tmp_path.as_uri()}/none", spark)
    with pytest.raises(UnavailableError, match=r"registry\.json cannot be read"):
        absent.check()


def test_a_recording_without_schemas_names_the_file(tmp_path: Path) -> None:
    registry = open_registry(source(kind="recorded", path=str(tmp_path)))
    assert registry is not None
    with pytest.raises(UnavailableError, match=r"registry\.json cannot be read"):
        registry.check()


def test_a_source_in_json_has_no_registry() -> None:
    assert open_registry(source(kind="recorded", path="x", format="json")) is None


def test_the_login_of_kafka_is_inherited() -> None:
    with loopback(lambda _path: TYPES) as server:
        registry = open_registry(kafka(server.url, credentials_source="SASL_INHERIT"))
        assert registry is not None
        registry.check()
        registry.close()
    assert server.logins == ["Basic dTpw"]  # u:p


def test_a_login_that_is_not_there_cannot_be_inherited() -> None:
    config = kafka("http://registry", credentials_source="SASL_INHERIT")
    bare = {"bootstrap.servers": SecretStr("broker:9092")}
    with pytest.raises(ConfigError, match="SASL_INHERIT"):
        open_registry(config.model_copy(update={"kafka_options": bare}))


@pytest.mark.parametrize(
    "lacks", ["confluent_kafka.schema_registry", pytest.param("httpx2", id="too old")]
)
def test_a_package_that_is_missing_or_too_old_says_what_to_install(
    lacks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "lakeingest.source.registry.confluent", raising=False)
    monkeypatch.setitem(sys.modules, lacks, None)
    with pytest.raises(UnavailableError, match=r"lakeingest\[kafka\]"):
        open_registry(kafka("http://registry"))
