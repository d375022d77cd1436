"""Select the existing topics that carry row changes of the pipeline.

The rejected way is to pass the prefix or the pattern to Spark's ``subscribePattern``. It would also
read the transaction topic, the schema-change topic and heartbeats, whose records are no changes of
rows. A misspelt topic in the list would give an empty frame instead of an error. This module
selects the names once, before a range is planned, by the same rule for every kind of source.

A topic that does not begin with the prefix is refused, whether the list or the pattern selects it.
The topic's name without the prefix says which tables a transaction touched and which tables a lake
holds. So a topic that a router renamed would silently switch counting off.

These are never data topics: the transaction topic; the bare ``<prefix>`` (the schema changes of
MySQL, MariaDB, SQL Server and Oracle connectors); names that start with ``__`` (Kafka's own and
Debezium's heartbeats, ``__debezium-heartbeat.<prefix>``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING

from lakeingest.errors import ConfigError, UnavailableError
from lakeingest.topic_names import TopicNames

if TYPE_CHECKING:
    from lakeingest.source.contract import Source

INTERNAL = "__"
"""Prefix of the names that Kafka and Debezium use for internal topics."""

_SHOWN = 3
"""How many topic names a message shows at most."""


class MissingTopicError(UnavailableError):
    """A topic does not exist, though its source answers."""

    advice = "check the names, and that the connector runs"


def nearest(name: str, existing: Iterable[str]) -> str:
    """Return a clause that names the existing topics nearest to ``name``, or says none exists."""
    names = sorted(topic for topic in existing if not topic.startswith(INTERNAL))
    if not names:
        return "no topic exists there"
    matches = get_close_matches(name, names, n=_SHOWN, cutoff=0.5)
    examples = matches or names[:_SHOWN]
    more = (
        "" if matches or len(names) <= len(examples) else f" and {len(names) - len(examples)} more"
    )
    text = ", ".join(repr(topic) for topic in examples)
    return f"{'nearest' if matches else 'existing'}: {text}{more}"


def select_topics(
    existing: Collection[str], names: TopicNames, transaction_topic: str | None, where: str
) -> tuple[str, ...]:
    """Return the data topics among ``existing``, sorted.

    Args:
        existing: Names of all topics of the source.
        names: The settings that select topics. A listed topic must exist, unless it is retired.
            The prefix may be empty if topics are listed or matched by a pattern.
        transaction_topic: The topic of BEGIN and END; never a data topic.
        where: The source's name for messages, such as ``broker kafka:9092``.

    Raises:
        ConfigError: The pattern is no regular expression, nothing selects topics, or one of
            them does not begin with the prefix.
        UnavailableError: A listed topic does not exist, or the settings select no topic.
    """
    listed = [name for name in names.listed if name not in names.retired]
    for name in listed:
        if name not in existing:
            raise missing_topic(name, existing, where)
    data_topics = [
        topic for topic in existing if not topic.startswith(INTERNAL) and topic != names.prefix
    ]
    try:
        selected = {*listed, *filter(names.reads_topic, data_topics)} - {transaction_topic}
    except re.error as error:
        message = f"The topic pattern {names.pattern!r} is no regular expression: {error}."
        raise ConfigError(message) from error
    if names.pattern is None and not names.listed:
        if not names.prefix:
            message = "Neither a topic prefix nor topics nor a topic pattern is set."
            raise ConfigError(message)
        selected = set(filter(names.has_prefix, selected))
    if not selected:
        criterion = (
            f"matches {names.pattern!r}" if names.pattern else f"starts with '{names.prefix}.'"
        )
        message = (
            f"No data topic of {where} {criterion}; {nearest(names.prefix, existing)}. Check the "
            "topic prefix, list or pattern, and that the connector has written its first event."
        )
        raise MissingTopicError(message)
    outside = sorted(topic for topic in selected if not names.has_prefix(topic))
    if names.prefix and outside:
        more = f" and {len(outside) - _SHOWN} more" if len(outside) > _SHOWN else ""
        message = (
            f"Topics outside the topic prefix '{names.prefix}' are selected: "
            f"{', '.join(outside[:_SHOWN])}{more}. Narrow lakeingest.source.topics to topics that "
            f"begin with '{names.prefix}.'. Topics that a router renamed are not supported: BEGIN "
            "and END count rows by the names that the connector gave."
        )
        raise ConfigError(message)
    return tuple(sorted(selected))


def missing_topic(name: str, existing: Iterable[str], where: str) -> MissingTopicError:
    """Return the error for a missing topic; it names the nearest existing topic."""
    return MissingTopicError(
        f"Topic {name!r} does not exist in {where}; {nearest(name, existing)}. Debezium creates "
        "the topic of a table with its first event: check the name, or that the connector runs."
    )


def has_topic(source: Source, topic: str) -> bool:
    """Return whether a topic exists, also one that holds no rows."""
    try:
        source.watermarks([topic])
    except MissingTopicError:
        return False
    return True
