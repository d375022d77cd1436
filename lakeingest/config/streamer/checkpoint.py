"""Parse a checkpoint of Hudi's streamer: the offsets up to which the streamer has read a topic.

Its text is ``topic,0:10,1:20``: for each partition the first offset that is *not* yet read. The
option ``--checkpoint`` holds it, and so does the metadata of the streamer's commits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from lakeingest.errors import ConfigError

_FORM = re.compile(r"([A-Za-z0-9._-]+)((?:,\d+:\d+)+)")


@dataclass(frozen=True)
class Checkpoint:
    """The offsets at which reading continues.

    Attributes:
        topic: The topic.
        offsets: Map from partition to the lowest offset that is not yet read.
    """

    topic: str
    offsets: Mapping[int, int]

    @classmethod
    def parse(cls, text: str) -> Checkpoint:
        """Parse the form ``topic,0:10,1:20``.

        Raises:
            ConfigError: The text has another form, or names a partition twice.
        """
        form = _FORM.fullmatch(text.strip())
        pairs = [part.split(":") for part in form[2].split(",")[1:]] if form else []
        offsets = {int(partition): int(offset) for partition, offset in pairs}
        if form is None or len(offsets) < len(pairs):
            message = (
                "A checkpoint has the form topic,0:10,1:20: the topic, then each partition once "
                "with the first offset that was not read."
            )
            raise ConfigError(message)
        return cls(form[1], offsets)

    def __str__(self) -> str:
        """Return the text that ``parse`` reads."""
        parts = (f"{partition}:{offset}" for partition, offset in sorted(self.offsets.items()))
        return ",".join([self.topic, *parts])
