"""Policies for values that may not fit, or say too little: of the pipeline, and of one table."""

from __future__ import annotations

import pytest

from lakeingest.config import load_config
from lakeingest.config.keys import split_table_key
from tests.config.settings import RECORDED

ORDERS = "lakeingest.table.public.orders"


def test_a_tables_policy_for_values_goes_before_the_pipelines() -> None:
    given = {
        "lakeingest.infinite.times": "edge",
        "lakeingest.ambiguous.nulls": "keep",
        f"{ORDERS}.infinite.times": "null",
        f"{ORDERS}.decimal.too.large": "string",
    }
    config = load_config({**RECORDED, **given})
    assert config.value_policies("public.orders") == {
        "decimal_too_large": "string",
        "infinite_times": "null",
        "ambiguous_nulls": "keep",
    }
    assert config.value_policies("public.others") == {
        "decimal_too_large": "fail",
        "infinite_times": "edge",
        "ambiguous_nulls": "keep",
    }


@pytest.mark.parametrize(
    ("key", "parts"),
    [
        ("public.orders.decimal.too.large", ("public.orders", "decimal.too.large")),
        ("public.decimal.infinite.times", ("public.decimal", "infinite.times")),
        ("public.infinite.key", ("public.infinite", "key")),
        ("public.decimal.schema.added", ("public.decimal", "schema.added")),
        ("decimal.too.large", ("", "decimal.too.large")),
    ],
)
def test_a_collection_ends_where_the_longest_setting_begins(
    key: str, parts: tuple[str, str]
) -> None:
    assert split_table_key(f"lakeingest.table.{key}") == parts
