"""Warn of a table's settings whose topic is not read: most often the name is misspelt.

This is a warning and no error: Debezium makes a topic with a table's first event, so a table may
well be declared before it has a topic. Where the name resembles that of a table without settings,
the warning names that table.

Where ``lakeingest.source.topics`` lists topics, loading the configuration (``config.load``) warns
of a table that is not among them; this module does not repeat it.

The names in ``lakeingest.transaction.filtered.collections`` are not checked. A transform drops all
rows of these tables, so the right names have no topic, and a warning would appear in every correct
run. A misspelt name leads to a transaction that lacks rows. That stops the run, and the message
names the table (``stall_detection.py``).
"""

from __future__ import annotations

from collections.abc import Collection

from lakeingest.config.keys import TABLE
from lakeingest.config.model import PipelineConfig
from lakeingest.config.spelling import nearest
from lakeingest.errors import ConfigError

_SHOWN = 5
"""How many tables a warning names at most."""


def without_topic(
    config: PipelineConfig, topics: Collection[str], published: Collection[str]
) -> list[str]:
    """Return a warning for each table of the settings that has no topic.

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


def topics_left_out(config: PipelineConfig, existing: Collection[str]) -> list[str]:
    """Return a warning if ``lakeingest.source.topics`` leaves out topics of the prefix.

    Args:
        config: The pipeline.
        existing: The data topics of the prefix, selected or not.
    """
    names = config.source.names
    topics = sorted(topic for topic in existing if not names.reads_topic(topic))
    topics = [topic for topic in topics if topic not in names.retired]
    if not topics:
        return []
    listed = ", ".join(map(names.plain, topics[:_SHOWN]))
    more = f" and {len(topics) - _SHOWN} more" if len(topics) > _SHOWN else ""
    return [
        f"lakeingest.source.topics leaves out {listed}{more}: the lake does not have these tables, "
        "and a transaction that touched them is published without their rows."
    ]


def refuse_left_out(config: PipelineConfig, published: Collection[str]) -> None:
    """Stop where the topic of a published table is not read any more.

    Later publications would show that table at an earlier commit than the others. Where each event
    is on its own, nothing promises one commit for all tables, and a router may name topics as it
    likes.

    Args:
        config: The pipeline, with the topics of retired tables.
        published: Tables of the newest publication.

    Raises:
        ConfigError: The topic of a published table is not read.
    """
    source = config.source
    if not source.is_whole:
        return
    tables = sorted(name for name in published if not source.names.reads(name))
    if tables:
        message = (
            f"Table '{tables[0]}' is published ({len(tables)} such tables), but its topic "
            f"'{source.names.topic(tables[0])}' is not read any more (lakeingest.source.topics): "
            "later publications would show it at an older commit than the other tables. Add the "
            f"topic again, or retire the table first: lakeingest retire CONFIG '{tables[0]}'. "
            "Nothing was read."
        )
        raise ConfigError(message)


def _warning(topic: str, name: str, near: str | None) -> str:
    question = f" Was {near} meant?" if near else ""
    return (
        f"{TABLE}{name}.* has no effect yet: no topic '{topic}' is read.{question} (Debezium "
        "makes a table's topic with its first event.)"
    )
