"""Parse the value of the key for topics: names that the connector gives, or a pattern.

Topics with other names are refused. A router in Kafka Connect (``RegexRouter``, an outbox, one
topic for many tables) renames a topic, but not the table in BEGIN and END. lakeingest would not
count the rows of a renamed topic, so it would publish transactions with missing rows; and it would
wait for rows of a topic that it does not read. Without whole transactions there are no counts, but
before the first publication lakeingest finds a lake's tables by the topics' names. So both modes
refuse such topics.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

_NAME = re.compile(r"[A-Za-z0-9._-]+")


def items(text: str) -> tuple[str, ...]:
    """Return the non-empty items of a comma-separated list."""
    return tuple(item.strip() for item in text.split(",") if item.strip())


def are_names(text: str) -> bool:
    """Return whether a text is a list of names, not a pattern.

    A list of names is also a regular expression; any other text must be meant as a pattern.
    """
    return all(_NAME.fullmatch(item) for item in items(text))


def refuse_other_names(
    topics: Sequence[str], prefix: str | None, referenced: Collection[str]
) -> None:
    """Refuse listed topics that do not begin with the topic prefix.

    Args:
        topics: The listed topics.
        prefix: The connector's topic prefix; ``None``: it is itself missing or wrong.
        referenced: Fields of the source whose values a message must not show.

    Raises:
        ValueError: A topic does not begin with the prefix; the message names the remedy.
    """
    outside = [topic for topic in topics if not topic.startswith(f"{prefix}.")]
    if prefix is None or not outside:
        return
    secret_fields = {"topics", "topic_prefix"} & {*referenced}
    detail = "" if secret_fields else f" ('{prefix}.'), which {', '.join(outside)} lack"
    message = (
        f"a topic begins with lakeingest.source.topic.prefix and a dot{detail}. List the topics as "
        "the connector names them, those of another connector in a pipeline of their own. Topics "
        "that a router renamed are not supported: BEGIN and END count rows by the names that the "
        "connector gave, so take the router out"
    )
    raise ValueError(message)
