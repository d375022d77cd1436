from __future__ import annotations

import pytest

from lakeingest.config.streamer.checkpoint import Checkpoint
from lakeingest.errors import ConfigError


def test_a_checkpoint_names_the_next_offset_of_each_partition() -> None:
    checkpoint = Checkpoint.parse(" shop.public.orders,1:20,0:10 ")
    assert checkpoint == Checkpoint("shop.public.orders", {0: 10, 1: 20})
    assert str(checkpoint) == "shop.public.orders,0:10,1:20"
    assert Checkpoint.parse(str(checkpoint)) == checkpoint


@pytest.mark.parametrize(
    "text", ["", "topic", "topic,", "topic,0", "topic,0:x", "topic,0:1,0:2", "0:1", "a b,0:1"]
)
def test_another_form_is_refused_with_the_right_one(text: str) -> None:
    with pytest.raises(ConfigError, match="topic,0:10,1:20"):
        Checkpoint.parse(text)
