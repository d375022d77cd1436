from __future__ import annotations

import re

import pytest

from lakeingest.config import load_config
from lakeingest.config.keys import KEYS, TABLE_KEYS
from lakeingest.config.model import PipelineConfig, SourceConfig, TableConfig, TargetConfig
from lakeingest.config.model.maintenance import MaintenanceConfig
from lakeingest.config.model.schema_changes import SchemaChanges
from lakeingest.config.reference import reference
from lakeingest.config.streamer.settings import HUDI_NAMES
from tests.config.settings import RECORDED

_MODELS = (PipelineConfig, SourceConfig, TargetConfig, TableConfig)


def test_every_key_is_in_the_reference_with_its_meaning() -> None:
    printed = reference()
    for key in (*KEYS, *TABLE_KEYS.values()):
        assert f"| `{key.name}` |" in printed
        assert key.description in printed
    for name in HUDI_NAMES:
        assert f"`{name}`" in printed


def test_the_reference_says_which_of_hudis_settings_are_handed_on() -> None:
    families = re.findall(r"`(hoodie\.[a-z.]+\.)\*`", reference())
    assert len(families) > 4
    for family in families:
        key = f"{family}x"
        config = load_config({**RECORDED, "lakeingest.target.format": "hudi", key: "1"})
        assert config.target.hudi_writer_options() == {key: "1"}


@pytest.mark.parametrize("key", ["lakeingest.schema", "lakeingest.table.<collection>.schema"])
def test_the_reference_offers_only_what_can_be_chosen(key: str) -> None:
    printed = reference()
    assert f"| `{key}.retyped` | `ignore` \\| `stop` |" in printed
    assert f"| `{key}.added` | `evolve` \\| `ignore` \\| `stop` |" in printed


# As a sentence of its own, with a reason behind it.
REASON = re.compile(r"(?:^|\. )(?:Default(?::| as)|If not given:?|Needed for) .{4}")


def test_every_default_of_a_setting_has_a_reason() -> None:
    for key in (*KEYS, *TABLE_KEYS.values()):
        required = key.model.model_fields[key.field].is_required()
        assert required or REASON.search(key.description), key.name


def test_every_field_of_the_model_has_a_key() -> None:
    filled = {(key.model, key.field) for key in (*KEYS, *TABLE_KEYS.values())}
    derived = {
        *("referenced", "warnings", "source", "target", "tables", "schema_changes", "maintenance"),
        *("kafka_options", "registry_options", "hudi_options"),
        *("topic_pattern", "retired_topics", "rewound_topics", "loads"),
    }
    for model in (*_MODELS, SchemaChanges, MaintenanceConfig):
        for field in model.model_fields:
            assert field in derived or (model, field) in filled, field
