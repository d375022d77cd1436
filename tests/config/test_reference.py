from __future__ import annotations

from lakeingest.config.hudi_keys import HUDI_NAMES
from lakeingest.config.keys import KEYS, TABLE_KEYS
from lakeingest.config.model import PipelineConfig, SourceConfig, TargetConfig
from lakeingest.config.reference import reference
from lakeingest.config.schema_changes import SchemaChanges, TableSchemaChanges
from lakeingest.config.table import TableConfig

_MODELS = (PipelineConfig, SourceConfig, TargetConfig, TableConfig)


def test_every_key_is_in_the_reference_with_its_meaning() -> None:
    printed = reference()
    for key in (*KEYS, *TABLE_KEYS.values()):
        assert f"| `{key.name}` |" in printed
        assert key.description in printed
    for name in HUDI_NAMES:
        assert f"`{name}`" in printed


def test_every_default_of_a_setting_has_a_reason() -> None:
    for key in (*KEYS, *TABLE_KEYS.values()):
        assert (
            "efault" in key.description
            or "If not given" in key.description
            or (key.model.model_fields[key.field].is_required() or key.name.endswith("path"))
        ), key.name


def test_every_field_of_the_model_has_a_key() -> None:
    filled = {(key.model, key.field) for key in (*KEYS, *TABLE_KEYS.values())}
    derived = {
        "referenced",
        "warnings",
        "source",
        "target",
        "tables",
        "kafka_options",
        "registry_options",
        "hudi_options",
        "schema_changes",
    }
    derived.add("topic_pattern")
    for model in (*_MODELS, SchemaChanges, TableSchemaChanges):
        for field in model.model_fields:
            assert field in derived or (model, field) in filled, field
