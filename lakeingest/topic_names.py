"""The topic of a table: Debezium's rule, in one place for settings, counts and messages.

A topic is ``<prefix>.<collection>``, except that Debezium writes ``_`` for what Kafka does not take
in a name: ``Order Items`` goes to ``Order_Items``. The source block and END keep the table's name.
So the topic follows from the table, but not the table from the topic: ``a b`` and ``a_b`` share
one. The rejected way is to cut the prefix off a topic and to call the rest a table: such a table's
rows were not counted, and its folder was not found after a crash. Which tables a topic holds is
learned from what was read: the source block, the ledger, the configuration.

The rule goes by Java's characters, so one outside the basic plane counts for two. Sources:
``AbstractTopicNamingStrategy.sanitizedTopicName`` (Debezium 2.0 to 3.4, every connector),
``TopicNamingStrategy.MAX_NAME_LENGTH``. Another ``topic.naming.strategy`` or ``topic.delimiter``
names topics differently; ``config/topic_names.py`` refuses those.
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
    """The names of a connector's data topics, and which of them are read.

    Attributes:
        prefix: Debezium's ``topic.prefix``.
        listed: Topics that are read; empty: those that the pattern matches.
        pattern: Regular expression that the whole name of a topic matches; ``None``: all topics of
            the prefix are read.
        retired: Topics of retired tables: not read, whatever else is said of them.
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
        """Return whether the topic of a table is read."""
        return self.reads_topic(self.topic(collection))

    def reads_topic(self, topic: str) -> bool:
        """Return whether a topic of the prefix is read."""
        if topic in self.retired:
            return False
        if self.pattern is not None:
            return re.fullmatch(self.pattern, topic) is not None
        return not self.listed or topic in self.listed

    def reads_column(self, collection: Column) -> Column | None:
        """Return ``reads`` as a condition; ``None``: the topic of every table is read."""
        topic = self.topic_column(collection)
        chosen = topic.isin(*self.listed) if self.listed else None
        if self.pattern is not None:
            chosen = topic.rlike(f"^(?:{self.pattern})$")
        if not self.retired:
            return chosen
        kept = ~topic.isin(*self.retired)
        return kept if chosen is None else chosen & kept

    def topic_column(self, collection: Column) -> Column:
        """Return ``topic`` as an expression over a table's name."""
        # Not above: a misspelt key is reported without waiting for pyspark.
        from pyspark.sql import functions as F

        whole = F.concat(F.lit(f"{self.prefix}."), collection)
        wide = F.regexp_replace(whole, r"[\x{10000}-\x{10FFFF}]", "__")
        return F.substring(F.regexp_replace(wide, _ILLEGAL, "_"), 1, _LONGEST)

    def plain(self, topic: str) -> str:
        """Return the table that a topic is named after if Debezium has rewritten nothing.

        A guess where the name holds ``_``: good to look for a table, not to count its rows.
        """
        return topic.removeprefix(f"{self.prefix}.")

    def without(self, topics: Collection[str], collections: Collection[str]) -> list[str]:
        """Return the topics that hold none of these tables."""
        known = {self.topic(name) for name in collections}
        return [topic for topic in topics if topic not in known]
