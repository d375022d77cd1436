"""Name the topic of a table by Debezium's rule, in one place for settings, counts and messages.

A topic is ``<prefix>.<collection>``. Debezium replaces each character that Kafka does not allow in
a topic name by ``_``: ``Order Items`` goes to ``Order_Items``. The source block and END keep the
table's name. So the table determines the topic, but the topic does not determine the table: ``a b``
and ``a_b`` share one topic. The rejected way is to cut the prefix off a topic and to take the rest
for the table: lakeingest then did not count the rows of such a table, and did not find its folder
after a crash. The source block, the ledger and the configuration say which tables a topic holds.

The rule counts Java's characters, so a character outside the basic plane counts as two. Sources:
``AbstractTopicNamingStrategy.sanitizedTopicName`` (Debezium 2.0 to 3.4, every connector),
``TopicNamingStrategy.MAX_NAME_LENGTH``. Another ``topic.naming.strategy`` or ``topic.delimiter``
names topics differently; ``config/model/source.py`` refuses those.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column

_ILLEGAL = "[^A-Za-z0-9._-]"
_LONGEST = 249


@dataclass(frozen=True)
class TopicNames:
    """The names of a connector's data topics, and which of them lakeingest reads.

    Attributes:
        prefix: Debezium's ``topic.prefix``.
        listed: Topics to read; empty: the pattern selects them.
        pattern: Regular expression that must match the whole name of a topic; ``None``: without
            listed topics, lakeingest reads all topics of the prefix.
        retired: Topics of retired tables: not read, even if listed or matched by the pattern.
    """

    prefix: str
    listed: tuple[str, ...] = ()
    pattern: str | None = None
    retired: tuple[str, ...] = ()

    def topic(self, collection: str) -> str:
        """Return the topic that holds the changes of a table."""
        wide = re.sub("[^\x00-\uffff]", "__", f"{self.prefix}.{collection}")
        return re.sub(_ILLEGAL, "_", wide)[:_LONGEST]

    def reads(self, collection: str) -> bool:
        """Return whether lakeingest reads the topic of a table."""
        return self.reads_topic(self.topic(collection))

    def reads_topic(self, topic: str) -> bool:
        """Return whether lakeingest reads this topic of the prefix."""
        if topic in self.retired:
            return False
        if self.pattern is not None:
            return re.fullmatch(self.pattern, topic) is not None
        return not self.listed or topic in self.listed

    def has_prefix(self, topic: str) -> bool:
        """Return whether a topic's name begins with the connector's prefix."""
        return topic.startswith(f"{self.prefix}.")

    def reads_column(self, collection: Column) -> Column | None:
        """Return ``reads`` as a condition; ``None``: lakeingest reads every table's topic."""
        topic = self.topic_column(collection)
        selected = topic.isin(*self.listed) if self.listed else None
        if self.pattern is not None:
            selected = topic.rlike(f"^(?:{self.pattern})$")
        if not self.retired:
            return selected
        not_retired = ~topic.isin(*self.retired)
        return not_retired if selected is None else selected & not_retired

    def topic_column(self, collection: Column) -> Column:
        """Return ``topic`` as an expression over a table's name."""
        # Not imported at the top: the report of a misspelt key must not wait for pyspark.
        from pyspark.sql import functions as F

        whole = F.concat(F.lit(f"{self.prefix}."), collection)
        wide = F.regexp_replace(whole, r"[\x{10000}-\x{10FFFF}]", "__")
        return F.substring(F.regexp_replace(wide, _ILLEGAL, "_"), 1, _LONGEST)

    def plain(self, topic: str) -> str:
        """Return the table of a topic, assuming that Debezium replaced no character.

        If the name holds ``_``, the result is a guess: good enough to look for a table, not to
        count its rows.
        """
        return topic.removeprefix(f"{self.prefix}.")

    def without(self, topics: Collection[str], collections: Collection[str]) -> list[str]:
        """Return those of ``topics`` that hold none of these tables."""
        table_topics = {self.topic(name) for name in collections}
        return [topic for topic in topics if topic not in table_topics]
