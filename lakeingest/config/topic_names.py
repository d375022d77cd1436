"""What the key of the topics holds: names of the connector's own, or a pattern.

Topics under other names are refused. A router in Kafka Connect (``RegexRouter``, an outbox, one
topic for many tables) renames a topic, but not the table in BEGIN and END: what is read would not
be counted, so that transactions would be published with rows missing, and what is not read would be
waited for. Reading each event on its own needs no counts, but finds the tables of a lake that has
no publication yet by the names of the topics. So it is the same for both.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

_NAME = re.compile(r"[A-Za-z0-9._-]+")


def items(text: str) -> tuple[str, ...]:
    """Return the items of a list that is separated by commas, without empty ones."""
    return tuple(item.strip() for item in text.split(",") if item.strip())


def are_names(text: str) -> bool:
    """Tell a list of names from a pattern.

    Names are a regular expression as well; what is anything else must be meant as one.
    """
    return all(_NAME.fullmatch(item) for item in items(text))


def refuse_other_names(
    topics: Sequence[str], prefix: str | None, referenced: Collection[str]
) -> None:
    """Refuse listed topics that do not begin with the topic prefix.

    Args:
        topics: What is listed.
        prefix: The connector's; null: it is missing or wrong itself.
        referenced: Fields of the source whose values are not to be shown.

    Raises:
        ValueError: It says what to do.
    """
    outside = [topic for topic in topics if not topic.startswith(f"{prefix}.")]
    if prefix is None or not outside:
        return
    hidden = {"topics", "topic_prefix"} & {*referenced}
    named = "" if hidden else f" ('{prefix}.'), which {', '.join(outside)} lack"
    message = (
        f"a topic begins with lakeingest.source.topic.prefix and a dot{named}. List the topics as "
        "the connector names them, those of another connector in a pipeline of their own. Topics "
        "that a router renamed are not supported: BEGIN and END count rows by the names that the "
        "connector gave, so take the router out"
    )
    raise ValueError(message)
