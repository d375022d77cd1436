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
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from lakeingest.errors import ConfigError, UnavailableError

INTERNAL = "__"
"""Prefix of the names that Kafka and Debezium use for internal topics."""

_SHOWN = 3
"""How many topic names a message shows at most."""


class MissingTopicError(UnavailableError):
    """A topic does not exist, though its source answers."""


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


@dataclass(frozen=True)
class TopicRule:
    """The settings that select topics.

    Attributes:
        prefix: Debezium's ``topic.prefix``; every data topic begins with it. May be empty if
            ``listed`` or ``pattern`` is set.
        listed: Topics that must exist. With them or a pattern the prefix selects nothing.
        pattern: Regular expression that must match the whole name of a topic.
        transaction_topic: The topic of BEGIN and END; never a data topic.
        retired: Topics of retired tables: not selected, and they need not exist.
    """

    prefix: str
    listed: tuple[str, ...] = ()
    pattern: str | None = None
    transaction_topic: str | None = None
    retired: tuple[str, ...] = ()

    def select(self, existing: Collection[str], where: str) -> tuple[str, ...]:
        """Return the data topics among ``existing``, sorted.

        Args:
            existing: Names of all topics of the source.
            where: The source's name for messages, such as ``broker kafka:9092``.

        Raises:
            ConfigError: The pattern is no regular expression, nothing selects topics, or one of
                them does not begin with the prefix.
            UnavailableError: A listed topic does not exist, or the rule selects no topic.
        """
        listed = [name for name in self.listed if name not in self.retired]
        for name in listed:
            if name not in existing:
                raise missing_topic(name, existing, where)
        excluded = {self.transaction_topic, *self.retired}
        selected = {*listed, *filter(self._matches, existing)} - excluded
        if not selected:
            criterion = (
                f"matches {self.pattern!r}" if self.pattern else f"starts with '{self.prefix}.'"
            )
            message = (
                f"No data topic of {where} {criterion}; {nearest(self.prefix, existing)}. Check "
                "the topic prefix, list or pattern, and that the connector has written its first "
                "event."
            )
            raise UnavailableError(message)
        self._refuse_outside(sorted(selected))
        return tuple(sorted(selected))

    def _refuse_outside(self, topics: Sequence[str]) -> None:
        outside = [topic for topic in topics if not topic.startswith(f"{self.prefix}.")]
        if self.prefix and outside:
            more = f" and {len(outside) - _SHOWN} more" if len(outside) > _SHOWN else ""
            message = (
                f"Topics outside the topic prefix '{self.prefix}' are selected: "
                f"{', '.join(outside[:_SHOWN])}{more}. Narrow lakeingest.source.topics to topics "
                f"that begin with '{self.prefix}.'. Topics that a router renamed are not "
                "supported: BEGIN and END count rows by the names that the connector gave."
            )
            raise ConfigError(message)

    def _matches(self, topic: str) -> bool:
        if topic.startswith(INTERNAL) or topic == self.prefix:
            return False
        if self.pattern is not None:
            try:
                return re.fullmatch(self.pattern, topic) is not None
            except re.error as error:
                message = f"The topic pattern {self.pattern!r} is no regular expression: {error}."
                raise ConfigError(message) from error
        if self.listed:
            return False
        if not self.prefix:
            message = "Neither a topic prefix nor topics nor a topic pattern is set."
            raise ConfigError(message)
        return topic.startswith(f"{self.prefix}.")


def missing_topic(name: str, existing: Iterable[str], where: str) -> MissingTopicError:
    """Return the error for a missing topic; it names the nearest existing topic."""
    return MissingTopicError(
        f"Topic {name!r} does not exist in {where}; {nearest(name, existing)}. Debezium creates "
        "the topic of a table with its first event: check the name, or that the connector runs."
    )
