"""Policies for values that may not fit, or say too little: of the pipeline, and of one table."""

from __future__ import annotations

import pytest

from lakeingest.config import load_config
from lakeingest.config.keys import split_table_key
from lakeingest.errors import ConfigError
from tests.config.settings import RECORDED

ORDERS = "lakeingest.table.public.orders"


def test_a_tables_policy_for_values_goes_before_the_pipelines() -> None:
    config = load_config(
        {
            **RECORDED,
            "lakeingest.infinite.times": "edge",
            "lakeingest.ambiguous.nulls": "keep",
            f"{ORDERS}.infinite.times": "null",
            f"{ORDERS}.decimal.too.large": "string",
        }
    )
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


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (f"{ORDERS}.decimal.to.large", f"{ORDERS}.decimal.too.large"),
        (f"{ORDERS}.infinite.time", f"{ORDERS}.infinite.times"),
    ],
)
def test_a_misspelt_policy_of_a_table_is_told(written: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=f"did you mean {meant}"):
        load_config({**RECORDED, written: "string"})


def test_a_policy_that_there_is_not_is_told_with_its_table() -> None:
    with pytest.raises(ConfigError, match=rf"{ORDERS}\.infinite\.times=keep: .*'edge'"):
        load_config({**RECORDED, f"{ORDERS}.infinite.times": "keep"})
