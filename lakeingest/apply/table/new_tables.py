"""Tables that a window names for the first time: what must hold before anything is written.

A topic does not tell its tables (``topic_names.py``), so which tables there are is known for
certain only from the rows of a window. A table that a killed run made and did not publish is found
here, and how far it is counts for the next batch. Rejected: to list the lake's folders, which holds
folders of anybody, and to publish a table's name before the table: a commit more for each new one.

A table that was looked at is not looked at again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from lakeingest.apply.lake import LakeState, with_tables
from lakeingest.apply.window.window import Window
from lakeingest.config.keys import TABLE
from lakeingest.config.model import PipelineConfig
from lakeingest.engine.file_names import tells_case_apart
from lakeingest.errors import ConfigError
from lakeingest.frame_schemas import Kind
from lakeingest.ledger.publication import Publication
from lakeingest.sink.contract import Sink


def likely_tables(config: PipelineConfig, topics: Iterable[str]) -> list[str]:
    """Return the tables that these topics hold, as far as the configuration and their names tell.

    Args:
        config: The pipeline.
        topics: The data topics that are read.
    """
    names, read = config.source.names, list(topics)
    set_up = [name for name in config.tables if names.topic(name) in read]
    return sorted({*set_up, *map(names.plain, names.without(read, set_up))})


class FirstSeen:
    """Checks the tables of a window when its rows name them."""

    def __init__(self, config: PipelineConfig, sink: Sink):
        """Bind to a pipeline.

        Args:
            config: The pipeline.
            sink: Where the tables are.
        """
        self._config = config
        self._sink = sink

    def states(self, window: Window, state: LakeState) -> LakeState:
        """Return the lake's state with that of the window's tables.

        Raises:
            ConfigError: A row's table is retired, or not the one of its topic, settings mean
                another table, or two tables would share a folder, or somebody else's files lie
                where a table would; or see ``lake.with_tables``.
            DataError, FencedError: See there.
        """
        rows = list(window.contents.of(Kind.ROW, Kind.SNAPSHOT, Kind.TRUNCATE))
        places = sorted({(row.collection, row.where.topic) for row in rows})
        names = sorted({name for name, _ in places})
        self._refuse_retired(places, state.head)
        self._refuse_renamed(places)
        self._refuse_other_settings(names)
        self._refuse_one_folder({*names, *state.tables, *state.head.tables})
        # ENDs that came again may be of an adopted table's first writer; a new snapshot sweeps all.
        if window.again or (window.snapshot and state.head.frontier.epoch):
            names += state.head.tables
        return with_tables(state, self._sink, names)

    def _refuse_retired(self, places: Sequence[tuple[str, str]], head: Publication) -> None:
        """Stop before new rows are mixed into a retired table: its own topic is not read."""
        for name, topic in places:
            if name in head.retired:
                message = (
                    f"Topic '{topic}' holds rows of table '{name}', which is retired since batch "
                    f"{head.retired[name].batch}. Take the topic out (lakeingest.source.topics), "
                    f"or take the table up again: lakeingest retire CONFIG '{name}' --undo. "
                    "Nothing of this window was written."
                )
                raise ConfigError(message)

    def _refuse_renamed(self, places: Sequence[tuple[str, str]]) -> None:
        """Stop where rows are not counted because their topic has another name than Debezium's."""
        source = self._config.source
        if source.ends_topic is None or not (source.topics or source.topic_pattern):
            return
        for name, topic in places:
            wanted = source.names.topic(name)
            if topic != wanted and not source.names.reads(name):
                message = (
                    f"Topic '{topic}' holds rows of table '{name}', whose topic Debezium names "
                    f"'{wanted}': a router or another topic.naming.strategy renamed it. END counts "
                    "rows by table, so with lakeingest.source.topics set these would not be "
                    "counted. Take the router out, or remove lakeingest.source.topics. Nothing of "
                    "this window was written."
                )
                raise ConfigError(message)

    def _refuse_one_folder(self, names: Collection[str]) -> None:
        """Stop before two tables share a folder, as they do where case does not count."""
        by_folder: dict[str, str] = {}
        for name in sorted(names):
            folder = self._sink.path(name)
            other = by_folder.setdefault(folder.casefold(), name)
            same = self._sink.path(other) == folder
            if other != name and (same or not tells_case_apart(folder)):
                message = (
                    f"Tables '{other}' and '{name}' would lie in one folder: the file system of "
                    f"lakeingest.target.path takes '{self._sink.path(other)}' and '{folder}' for "
                    f"the same. Give one a folder of its own with {TABLE}{_in_a_file(name)}.path. "
                    "Nothing of this window was written."
                )
                raise ConfigError(message)

    def _refuse_other_settings(self, names: Sequence[str]) -> None:
        """Stop where the settings of a table are written under the name of its topic."""
        tables, by = self._config.tables, self._config.source.names
        for name in names:
            as_topic = by.plain(by.topic(name))
            if name not in tables and as_topic in tables and as_topic not in names:
                message = (
                    f"{TABLE}{as_topic}.*: the rows of topic '{by.topic(name)}' are of table "
                    f"'{name}', whose name a topic cannot hold. Settings go by the table's name: "
                    f"write {TABLE}{_in_a_file(name)}.* instead. Nothing was written."
                )
                raise ConfigError(message)


def _in_a_file(name: str) -> str:
    """Return a table's name as it stands in a key of a ``.properties`` file."""
    return re.sub(r"([\\ \t:=#!])", r"\\\1", name)
