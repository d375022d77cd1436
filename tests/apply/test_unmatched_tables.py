"""Which tables no run reads, and what is said of them."""

from __future__ import annotations

import pytest

from lakeingest.apply.guards.unmatched_tables import topics_left_out
from lakeingest.config import load_config
from tests.config.settings import RECORDED

EXISTING = tuple(f"shop.public.{name}" for name in ("carts", "items", "orders"))


@pytest.mark.parametrize("topics", ["shop.public.orders", r"shop\.public\.ord.*"])
def test_tables_that_the_topics_leave_out_are_named(topics: str) -> None:
    config = load_config({**RECORDED, "lakeingest.source.topics": topics})
    (warning,) = topics_left_out(config, EXISTING)
    assert "lakeingest.source.topics leaves out public.carts, public.items:" in warning


def test_nothing_is_said_where_every_topic_is_read_or_a_table_is_retired() -> None:
    assert topics_left_out(load_config(RECORDED), EXISTING) == []
    config = load_config({**RECORDED, "lakeingest.source.topics": ",".join(EXISTING[1:])})
    source = config.source.model_copy(update={"retired_topics": EXISTING[:1]})
    assert topics_left_out(config.model_copy(update={"source": source}), EXISTING) == []


def test_of_many_tables_a_few_are_named() -> None:
    config = load_config({**RECORDED, "lakeingest.source.topics": "shop.public.a"})
    (warning,) = topics_left_out(config, [f"shop.public.t{n}" for n in range(7)])
    assert "public.t4 and 2 more:" in warning
