from __future__ import annotations

import re

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


# As a sentence of its own, with a reason behind it.
REASON = re.compile(r"(?:^|\. )(?:Default(?::| as)|If not given:?|Needed for) .{4}")


def test_every_default_of_a_setting_has_a_reason() -> None:
    for key in (*KEYS, *TABLE_KEYS.values()):
        required = key.model.model_fields[key.field].is_required()
        assert required or REASON.search(key.description), key.name


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
