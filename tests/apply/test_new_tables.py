"""What is refused where a window names a table, before anything of the window is written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from lakeingest.apply.as_published import as_published
from lakeingest.apply.lake import LakeState
from lakeingest.apply.table.new_tables import FirstSeen
from lakeingest.apply.window.contents import Contents, Portion
from lakeingest.config import load_config
from lakeingest.errors import ConfigError
from lakeingest.frame_schemas import Kind
from lakeingest.ledger.publication import Publication
from lakeingest.source.contract import TopicPartition
from tests.apply.test_retirement import retired
from tests.apply.test_stall_detection import EMPTY
from tests.config.settings import RECORDED


def look(head: Publication, topic: str, collection: str, **settings: str) -> None:
    """Look at a window with a row of a table on a topic, before the lake is asked for the table."""
    given = {f"lakeingest.{key}": value for key, value in settings.items()}
    config = load_config({**RECORDED, "lakeingest.source.topic.prefix": "shop", **given})
    row = Portion(TopicPartition(topic, 0), collection, Kind.ROW, 1, 0, "", 0, frozenset())
    window = replace(EMPTY, contents=Contents((row,)))
    FirstSeen(as_published(config, head), cast(Any, None)).states(window, LakeState(head, {}))


def test_rows_of_a_retired_table_may_be_on_no_other_topic() -> None:
    said = r"'shop\.routed' holds rows of table 'public\.orders', which is retired since batch 5"
    with pytest.raises(ConfigError, match=said):
        look(retired(), "shop.routed", "public.orders")


def test_settings_under_the_name_of_the_topic_are_refused() -> None:
    under_the_topic = {"table.public.Order_Items.key": "id"}
    with pytest.raises(ConfigError, match=r"write lakeingest\.table\.public\.Order\\ Items\.\*"):
        look(Publication(), "shop.public.Order_Items", "public.Order Items", **under_the_topic)
