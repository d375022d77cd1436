"""Check the tables that a window names for the first time, before anything is written.

A topic's name does not say its tables for certain (``topic_names.py``); only the rows of a window
do. The check also finds a table that a killed run made and did not publish. The progress of such a
table counts for the next batch. Rejected: list the lake's folders, because anybody's folders lie
there. Rejected: publish a table's name before the table; each new table would cost one commit more.

The state of a table is read once.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from lakeingest.apply.lake import LakeState, with_tables
from lakeingest.apply.window.window import Window
from lakeingest.config.keys import TABLE
from lakeingest.config.model import PipelineConfig
from lakeingest.engine.file_names import is_case_sensitive
from lakeingest.errors import ConfigError
from lakeingest.frame_schemas import Kind
from lakeingest.ledger.publication import Publication
from lakeingest.sink.contract import Sink


def likely_tables(config: PipelineConfig, topics: Iterable[str]) -> list[str]:
    """Return the tables of these topics, as far as the configuration and the topic names say.

    Args:
        config: The pipeline.
        topics: The data topics that the pipeline reads.
    """
    names, data_topics = config.source.names, list(topics)
    config_tables = [name for name in config.tables if names.topic(name) in data_topics]
    return sorted({*config_tables, *map(names.plain, names.without(data_topics, config_tables))})


class FirstSeen:
    """Checks the tables that the rows of a window name."""

    def __init__(self, config: PipelineConfig, sink: Sink):
        """Bind to a pipeline.

        Args:
            config: The pipeline.
            sink: Has the tables.
        """
        self._config = config
        self._sink = sink

    def states(self, window: Window, state: LakeState) -> LakeState:
        """Return the lake's state with the states of the window's tables.

        Raises:
            ConfigError: A row's table is retired, or another connector's; a topic's rows would not
                be counted for their table; settings name a topic instead of its table; two tables
                would share a folder; somebody else's files lie in the folder of a table; or see
                ``lake.with_tables``.
            DataError, FencedError: See ``lake.with_tables``.
        """
        rows = list(window.contents.of(Kind.ROW, Kind.SNAPSHOT, Kind.TRUNCATE))
        places = sorted({(row.collection, row.where.topic) for row in rows})
        names = sorted({name for name, _ in places})
        self._refuse_retired(places, state.head)
        self._refuse_other_connector(places)
        self._refuse_renamed(places)
        self._refuse_other_settings({*names, *state.head.tables}, names)
        self._refuse_one_folder({*names, *state.tables, *state.head.tables})
        # Redelivered ENDs may be from an adopted table's first writer; a new snapshot sweeps all.
        if window.again or (window.snapshot and state.head.frontier.epoch):
            names += state.head.tables
        return with_tables(state, self._sink, names)

    def _refuse_retired(self, places: Sequence[tuple[str, str]], head: Publication) -> None:
        """Raise an error before new rows are mixed into a retired table, which is not read."""
        for name, topic in places:
            if name in head.retired:
                message = (
                    f"Topic '{topic}' holds rows of table '{name}', which is retired since batch "
                    f"{head.retired[name].batch}. Take the topic out (lakeingest.source.topics), "
                    f"or take the table up again: lakeingest retire CONFIG '{name}' --undo. "
                    "Nothing of this window was written."
                )
                raise ConfigError(message)

    def _refuse_other_connector(self, places: Sequence[tuple[str, str]]) -> None:
        """Raise an error before rows of another database are mixed into a table.

        A connector whose prefix begins with this one's (``shop``, ``shop.eu``) has topics of this
        prefix, too, and its rows name tables that may be ours.
        """
        names = self._config.source.names
        for name, topic in places:
            own = names.topic(name)
            ending = own.removeprefix(names.prefix)
            if topic != own and topic.endswith(ending):
                message = (
                    f"Topic '{topic}' holds rows of table '{name}', whose topic is '{own}': it is "
                    f"of another connector, whose topic.prefix '{topic.removesuffix(ending)}' "
                    "begins with this one's. List the topics of this connector in "
                    "lakeingest.source.topics, or match them by lakeingest.source.topic.pattern. "
                    "Nothing of this window was written."
                )
                raise ConfigError(message)

    def _refuse_renamed(self, places: Sequence[tuple[str, str]]) -> None:
        """Raise an error where rows would not count: their topic does not have Debezium's name."""
        source = self._config.source
        if source.ends_topic is None or not (source.topics or source.topic_pattern):
            return
        for name, topic in places:
            debezium_topic = source.names.topic(name)
            if topic != debezium_topic and not source.names.reads(name):
                message = (
                    f"Topic '{topic}' holds rows of table '{name}', whose topic Debezium names "
                    f"'{debezium_topic}': a router or another topic.naming.strategy renamed it. "
                    "END counts rows by table, so with lakeingest.source.topics set these would "
                    "not be counted. Take the router out, or remove lakeingest.source.topics. "
                    "Nothing of this window was written."
                )
                raise ConfigError(message)

    def _refuse_one_folder(self, names: Collection[str]) -> None:
        """Raise an error before two tables share a folder, as where the storage ignores case."""
        by_folder: dict[str, str] = {}
        for name in sorted(names):
            folder = self._sink.path(name)
            other = by_folder.setdefault(folder.casefold(), name)
            same = self._sink.path(other) == folder
            if other != name and (same or not is_case_sensitive(folder)):
                message = (
                    f"Tables '{other}' and '{name}' would lie in one folder: the file system of "
                    f"lakeingest.target.path takes '{self._sink.path(other)}' and '{folder}' for "
                    f"the same. Give one a folder of its own with {TABLE}{_in_a_file(name)}.path. "
                    "Nothing of this window was written."
                )
                raise ConfigError(message)

    def _refuse_other_settings(self, present: Collection[str], names: Sequence[str]) -> None:
        """Raise an error where a table's settings are written under the name of its topic.

        Args:
            present: Tables of the window and of the lake.
            names: Tables of the window.
        """
        tables, topic_names = self._config.tables, self._config.source.names
        for name in names:
            as_topic = topic_names.plain(topic_names.topic(name))
            if name not in tables and as_topic in tables and as_topic not in present:
                message = (
                    f"{TABLE}{as_topic}.*: the rows of topic '{topic_names.topic(name)}' are of "
                    f"table '{name}', whose name a topic cannot hold. Settings go by the table's "
                    f"name: write {TABLE}{_in_a_file(name)}.* instead. Nothing was written."
                )
                raise ConfigError(message)


def _in_a_file(name: str) -> str:
    """Return a table's name as a key of a ``.properties`` file escapes it."""
    return re.sub(r"([\\ \t:=#!])", r"\\\1", name)
