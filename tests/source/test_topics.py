from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lakeingest.errors import ConfigError, UnavailableError
from lakeingest.source.topics import select_topics
from lakeingest.topic_names import TopicNames

EXISTING = {
    "__consumer_offsets",
    "__debezium-heartbeat.shop",
    "other.public.orders",
    "shop",
    "shop.public.carts",
    "shop.public.orders",
    "shop.transaction",
    "shopping.public.orders",
}
OTHERS = {"other.public.orders", "shopping.public.orders"}


def selected(names: TopicNames, existing: set[str] = EXISTING) -> tuple[str, ...]:
    return select_topics(existing, names, "shop.transaction", "here")


def shop(**selection: Any) -> TopicNames:
    return TopicNames("shop", **selection)


def test_prefix_selects_data_topics_and_neither_transactions_nor_schema_changes() -> None:
    assert selected(shop()) == ("shop.public.carts", "shop.public.orders")


def test_pattern_must_match_the_whole_name() -> None:
    assert selected(shop(pattern=r"shop\.public\.o.*")) == ("shop.public.orders",)
    assert selected(shop(pattern=r"shop.*\.carts")) == ("shop.public.carts",)


def test_pattern_that_matches_everything_leaves_out_what_is_no_data() -> None:
    assert selected(shop(pattern=".*"), {*EXISTING} - OTHERS) == (
        "shop.public.carts",
        "shop.public.orders",
    )


@pytest.mark.parametrize(
    "outside", [shop(pattern=".*"), shop(pattern=r".*\.orders"), shop(listed=tuple(sorted(OTHERS)))]
)
def test_topics_outside_the_prefix_are_refused_by_name(outside: TopicNames) -> None:
    with pytest.raises(ConfigError, match=r"'shop' are selected: other\.public\.orders, shopping"):
        selected(outside)
    assert {*selected(replace(outside, prefix=""))} >= OTHERS


def test_listed_topics_are_the_only_ones() -> None:
    assert selected(shop(listed=("shop.public.carts",))) == ("shop.public.carts",)


def test_missing_listed_topic_names_the_nearest_existing_one() -> None:
    with pytest.raises(UnavailableError, match=r"'shop.public.order' .*here; nearest: 'shop.publi"):
        selected(shop(listed=("shop.public.order",)))


def test_prefix_without_topics_names_what_there_is() -> None:
    with pytest.raises(UnavailableError, match=r"starts with 'shp\.'; nearest: 'shop'"):
        selected(TopicNames("shp"))
    with pytest.raises(UnavailableError, match="no topic exists there"):
        selected(shop(), {"__consumer_offsets"})


def test_pattern_that_is_no_regular_expression_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match=r"'\(' is no regular expression"):
        selected(shop(pattern="("))
