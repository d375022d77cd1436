"""Policies for changes of a schema: of the pipeline, and of one table."""

from __future__ import annotations

from lakeingest.config import load_config
from lakeingest.config.model.schema_changes import KINDS
from lakeingest.plan.evolution import DEFAULTS, Kind
from tests.config.settings import RECORDED


def test_the_kinds_and_their_defaults_are_those_of_the_plan() -> None:
    assert set(KINDS) == {kind.value for kind in Kind}
    policies = load_config(RECORDED).schema_policies("public.orders")
    assert policies == {kind.value: policy.value for kind, policy in DEFAULTS.items()}


def test_a_tables_policy_goes_before_the_pipelines() -> None:
    given = {
        "lakeingest.schema.added": "stop",
        "lakeingest.schema.dropped": "ignore",
        "lakeingest.table.public.orders.schema.added": "evolve",
        "lakeingest.table.public.orders.schema": "id BIGINT",
    }
    config = load_config({**RECORDED, **given})
    orders, others = config.schema_policies("public.orders"), config.schema_policies("public.x")
    assert (orders["added"], orders["dropped"]) == ("evolve", "ignore")
    assert (others["added"], others["dropped"]) == ("stop", "ignore")
    assert config.table("public.orders").ddl == "id BIGINT"
