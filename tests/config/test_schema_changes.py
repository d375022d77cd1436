"""Policies for changes of a schema: of the pipeline, and of one table."""

from __future__ import annotations

import re

import pytest

from lakeingest.config import load_config
from lakeingest.config.model.schema_changes import KINDS
from lakeingest.errors import ConfigError
from lakeingest.plan.evolution import DEFAULTS, Kind
from tests.config.settings import RECORDED


def test_the_kinds_and_their_defaults_are_those_of_the_plan() -> None:
    assert set(KINDS) == {kind.value for kind in Kind}
    policies = load_config(RECORDED).schema_policies("public.orders")
    assert policies == {kind.value: policy.value for kind, policy in DEFAULTS.items()}


def test_a_tables_policy_goes_before_the_pipelines() -> None:
    config = load_config(
        {
            **RECORDED,
            "lakeingest.schema.added": "stop",
            "lakeingest.schema.dropped": "ignore",
            "lakeingest.table.public.orders.schema.added": "evolve",
            "lakeingest.table.public.orders.schema": "id BIGINT",
        }
    )
    orders, others = config.schema_policies("public.orders"), config.schema_policies("public.x")
    assert (orders["added"], orders["dropped"]) == ("evolve", "ignore")
    assert (others["added"], others["dropped"]) == ("stop", "ignore")
    assert config.table("public.orders").ddl == "id BIGINT"


@pytest.mark.parametrize(
    "name", ["lakeingest.schema.retyped", "lakeingest.table.a.b.schema.retyped"]
)
def test_a_change_that_cannot_evolve_says_what_can_be_chosen(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"{re.escape(name)}=evolve: .*'ignore' or 'stop'"):
        load_config({**RECORDED, name: "evolve"})


def test_a_misspelt_kind_is_told() -> None:
    with pytest.raises(ConfigError, match=r"did you mean lakeingest\.table\.a\.b\.schema\.added"):
        load_config({**RECORDED, "lakeingest.table.a.b.schema.aded": "stop"})
