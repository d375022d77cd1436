"""Settings of a table whose topic is not read: most often its name is misspelt.

A warning and no error: Debezium makes a topic with a table's first event, so a table may well be
declared before it has one. Where a name is near that of a table without settings, it is told.

Where ``lakeingest.source.topics`` lists topics, a table that is not among them is told of when the
configuration is loaded (``config.load``), and not here again.

The names in ``lakeingest.transaction.filtered.collections`` are not looked at. A transform drops
what these tables' topics would hold, so that the right names have no topic, and a warning would
stand in every run that is as it should be. What a misspelt one leads to is a transaction that lacks
rows, which stops the run and says of which table (``stall_detection.py``).
"""

from __future__ import annotations

from collections.abc import Collection

from lakeingest.config.keys import TABLE, nearest
from lakeingest.config.model import PipelineConfig


def without_topic(
    config: PipelineConfig, topics: Collection[str], published: Collection[str]
) -> list[str]:
    """Return a warning for each table of the settings that is unknown.

    Args:
        config: The pipeline.
        topics: The data topics that are read.
        published: Tables of the newest publication.
    """
    names = config.source.names
    missing = sorted(
        name
        for name in config.tables
        if name not in published and names.topic(name) not in topics and names.reads(name)
    )
    unset = names.without(topics, {*config.tables, *published})
    others = sorted({*map(names.plain, unset), *published} - set(config.tables))
    return [_warning(names.topic(name), name, nearest(name, others)) for name in missing]


def _warning(topic: str, name: str, near: str | None) -> str:
    meant = f" Was {near} meant?" if near else ""
    return (
        f"{TABLE}{name}.* has no effect yet: no topic '{topic}' is read.{meant} (Debezium "
        "makes a table's topic with its first event.)"
    )
