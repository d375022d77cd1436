"""Define the settings of the log itself: the policies for a truncated and for a replaced log."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from lakeingest.config.fields import ConfigModel


class LogSettings(ConfigModel):
    """The part of a source's configuration that says which log is read."""

    missing_head: Literal["stop", "accept"] = Field(
        default="stop",
        description="What to do where a partition is read for the first time and does not begin at "
        "offset 0. `accept`: go on from where it begins, with a warning; a transaction of which "
        "rows or the END are gone still stops the run, so it helps where all topics were cut "
        "between the same two transactions, seldom after retention. Needed until the first "
        "publication. "
        "Default: `stop`, because rows that were removed before would be missing in the lake.",
    )
    new_topic_id: Literal["stop", "accept"] = Field(
        default="stop",
        description="What to do where Kafka's id of a topic is another one than when the topic was "
        "last read. `accept`: it is a copy with the same offsets (a linked cluster); go on. "
        "Default: `stop`, because in a topic that was deleted and made again an offset means "
        "another record.",
    )
