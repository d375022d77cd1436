"""Which of the existing topics carry row changes of the pipeline.

The rejected way is to hand the prefix or the pattern to Spark's ``subscribePattern``: it would also
take in the transaction topic, the schema-change topic and heartbeats, whose records are no changes
of rows, and a listed topic with a typing error would be an empty frame instead of an error. Here
the names are settled once, before a range is planned, by the same rule for every kind of source.

Topics that do not begin with the prefix are refused, listed or matched by a pattern: which tables a
transaction touched, and which a lake holds, is told by the topics' names without the prefix, so
that a topic renamed on its way would switch counting off without a word.

What is never a data topic: the transaction topic; the bare ``<prefix>`` (the schema changes of
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
"""Start of the names of topics that Kafka and Debezium keep for themselves."""

_SHOWN = 3
"""Names of topics that a message shows."""


class MissingTopicError(UnavailableError):
    """A topic does not exist, though its source answers."""


def nearest(name: str, existing: Iterable[str]) -> str:
    """Return a clause that names the existing topics most like ``name``, or that there are none."""
    names = sorted(topic for topic in existing if not topic.startswith(INTERNAL))
    if not names:
        return "no topic exists there"
    close = get_close_matches(name, names, n=_SHOWN, cutoff=0.5)
    shown = close or names[:_SHOWN]
    more = "" if close or len(names) <= len(shown) else f" and {len(names) - len(shown)} more"
    listed = ", ".join(repr(topic) for topic in shown)
    return f"{'nearest' if close else 'existing'}: {listed}{more}"


@dataclass(frozen=True)
class TopicRule:
    """What the configuration says about topics.

    Attributes:
        prefix: Debezium's ``topic.prefix``; every data topic begins with it. May be empty when
            topics or a pattern are given.
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
            where: The source as it stands in a message, such as ``broker kafka:9092``.

        Raises:
            ConfigError: The pattern is no regular expression, nothing selects topics, or one of
                them does not begin with the prefix.
            UnavailableError: A listed topic does not exist, or no topic is selected at all.
        """
        listed = [name for name in self.listed if name not in self.retired]
        for name in listed:
            if name not in existing:
                raise missing_topic(name, existing, where)
        never = {self.transaction_topic, *self.retired}
        chosen = {*listed, *filter(self._selected, existing)} - never
        if not chosen:
            wanted = (
                f"matches {self.pattern!r}" if self.pattern else f"starts with '{self.prefix}.'"
            )
            message = (
                f"No data topic of {where} {wanted}; {nearest(self.prefix, existing)}. Check the "
                "topic prefix, list or pattern, and that the connector has written its first event."
            )
            raise UnavailableError(message)
        self._refuse_outside(sorted(chosen))
        return tuple(sorted(chosen))

    def _refuse_outside(self, chosen: Sequence[str]) -> None:
        outside = [topic for topic in chosen if not topic.startswith(f"{self.prefix}.")]
        if self.prefix and outside:
            more = f" and {len(outside) - _SHOWN} more" if len(outside) > _SHOWN else ""
            message = (
                f"Topics outside the topic prefix '{self.prefix}' are selected: "
                f"{', '.join(outside[:_SHOWN])}{more}. Narrow lakeingest.source.topics to topics "
                f"that begin with '{self.prefix}.'. Topics that a router renamed are not "
                "supported: BEGIN and END count rows by the names that the connector gave."
            )
            raise ConfigError(message)

    def _selected(self, topic: str) -> bool:
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
    """Return the error for a topic that does not exist; it names the nearest one that does."""
    return MissingTopicError(
        f"Topic {name!r} does not exist in {where}; {nearest(name, existing)}. Debezium creates "
        "the topic of a table with its first event: check the name, or that the connector runs."
    )
