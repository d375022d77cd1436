from __future__ import annotations

import pytest

from lakeingest.errors import ConfigError, UnavailableError
from lakeingest.source.topics import TopicRule

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


def rule(
    prefix: str = "shop", listed: tuple[str, ...] = (), pattern: str | None = None
) -> TopicRule:
    return TopicRule(prefix, listed, pattern, "shop.transaction")


def test_prefix_selects_data_topics_and_neither_transactions_nor_schema_changes() -> None:
    assert rule().select(EXISTING, "here") == ("shop.public.carts", "shop.public.orders")


def test_pattern_must_match_the_whole_name() -> None:
    assert rule(pattern=r"shop\.public\.o.*").select(EXISTING, "here") == ("shop.public.orders",)
    assert rule(pattern=r"shop.*\.carts").select(EXISTING, "here") == ("shop.public.carts",)


def test_pattern_that_matches_everything_leaves_out_what_is_no_data() -> None:
    assert rule(pattern=".*").select({*EXISTING} - OTHERS, "here") == (
        "shop.public.carts",
        "shop.public.orders",
    )


@pytest.mark.parametrize(
    "outside",
    [rule(pattern=".*"), rule(pattern=r".*\.orders"), rule(listed=tuple(sorted(OTHERS)))],
)
def test_topics_outside_the_prefix_are_refused_by_name(outside: TopicRule) -> None:
    with pytest.raises(ConfigError, match=r"'shop' are selected: other\.public\.orders, shopping"):
        outside.select(EXISTING, "here")
    anything = TopicRule("", outside.listed, outside.pattern, "shop.transaction")
    assert {*anything.select(EXISTING, "here")} >= OTHERS


def test_listed_topics_are_the_only_ones() -> None:
    assert rule(listed=("shop.public.carts",)).select(EXISTING, "here") == ("shop.public.carts",)


def test_missing_listed_topic_names_the_nearest_existing_one() -> None:
    with pytest.raises(UnavailableError, match=r"'shop.public.order' .*here; nearest: 'shop.publi"):
        rule(listed=("shop.public.order",)).select(EXISTING, "here")


def test_prefix_without_topics_names_what_there_is() -> None:
    with pytest.raises(UnavailableError, match=r"starts with 'shp\.'; nearest: 'shop'"):
        rule("shp").select(EXISTING, "here")
    with pytest.raises(UnavailableError, match="no topic exists there"):
        rule().select({"__consumer_offsets"}, "here")


def test_pattern_that_is_no_regular_expression_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match=r"'\(' is no regular expression"):
        rule(pattern="(").select(EXISTING, "here")
