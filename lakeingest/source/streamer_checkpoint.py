"""Hudi Streamer's checkpoint of a Kafka topic: ``topic,0:offset,1:offset``, the next offsets.

It is the text that ``KafkaOffsetGen`` of Hudi writes with ``checkpoint.type=string``, in a commit's
metadata and for ``--checkpoint``. Partitions that it does not name were not read at all: Hudi
Streamer reads a new partition from offset 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from lakeingest.errors import ConfigError

_TEXT = re.compile(r"(?P<topic>[\w.-]+),(?P<parts>\d+:\d+(?:,\d+:\d+)*)")


@dataclass(frozen=True)
class StreamerCheckpoint:
    """Where a Hudi Streamer stands.

    Attributes:
        topic: The one topic that it reads.
        offsets: Partition to the next offset to read.
    """

    topic: str
    offsets: Mapping[int, int]


def parsed_checkpoint(text: str, of: str) -> StreamerCheckpoint:
    """Read a checkpoint.

    Args:
        text: The checkpoint.
        of: What it belongs to, for the message.

    Raises:
        ConfigError: It is not of this form.
    """
    found = _TEXT.fullmatch(text.strip())
    if found is None:
        message = (
            f"The checkpoint of {of} is not of the form 'topic,0:offset,1:offset' that Hudi "
            "Streamer writes for a Kafka topic. Give it in this form with "
            "lakeingest.table.<collection>.checkpoint."
        )
        raise ConfigError(message)
    pairs = (part.split(":") for part in found["parts"].split(","))
    return StreamerCheckpoint(found["topic"], {int(p): int(offset) for p, offset in pairs})
