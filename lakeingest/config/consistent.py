"""Find contradictions between the parts of a pipeline's configuration.

Each part is valid on its own. A run would find the contradictions later, most of them only after it
has started Spark and queried the source. This module returns all contradictions at once. Each
message names its keys, because a contradiction is never about one value alone, and says what to
set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakeingest.config.checkpoint import Checkpoint
from lakeingest.config.connector import event_column_problems
from lakeingest.config.hudi_services import service_problems
from lakeingest.config.order_settings import order_problems
from lakeingest.connectors import CONNECTORS
from lakeingest.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakeingest.config.model import PipelineConfig

_TABLE = "lakeingest.table."


def contradictions(config: PipelineConfig) -> list[str]:
    """Return one message per contradiction between the parts of ``config``, with the remedy."""
    source = config.source
    table_columns = [name for table in config.tables.values() for name in table.ordering_columns]
    needs_whole_transactions = (
        config.has_event_columns or config.commit_max_transactions is not None
    )
    problems = [
        *config.folders.problems(),
        *_names(config),
        *order_problems(
            source, source.connector, table_columns, needs_whole=needs_whole_transactions
        ),
        *_adoption(config),
        *_checkpoints(config),
        *service_problems(config.target.hudi_writer_options(), config.target.hudi_table_type),
    ]
    if source.snapshot_again == "replace" and source.transaction_mode == "none":
        problems.append(
            "lakeingest.source.snapshot.again=replace needs whole transactions: set "
            "lakeingest.transaction.mode=metadata, or leave snapshot.again at stop"
        )
    if config.has_event_columns:
        problems += event_column_problems(source.connector, source.snapshot_again)
    return problems


def _names(config: PipelineConfig) -> Iterator[str]:
    """Yield a message for each collection that the user names with the topic prefix."""
    for name in config.tables:
        bare = _without_prefix(name, config)
        if bare is not None:
            yield (
                f"{_TABLE}{name}.*: a table is named without the topic prefix; write "
                f"{_TABLE}{bare}.*"
            )
    for name in config.uncounted_collections:
        bare = _without_prefix(name, config)
        if bare is not None:
            is_referenced = "uncounted_collections" in config.referenced
            hint = "one" if is_referenced else f"write {bare}: {name}"
            yield (
                f"lakeingest.transaction.filtered.collections: {hint} begins with the topic "
                "prefix, which the names in END do not"
            )


def _without_prefix(name: str, config: PipelineConfig) -> str | None:
    """Return the collection in a topic's name; ``None``: the name is a collection's own.

    A database may have the prefix's name (``shop.orders`` of topic ``shop.shop.orders``). So count
    the dotted parts to tell a topic's name from a collection's name.
    """
    source = config.source
    bare = source.names.plain(name)
    if bare == name or source.names.topic(name) in source.topics:
        return None
    return bare if bare.count(".") + 1 >= CONNECTORS[source.connector].name_parts else None


def _adoption(config: PipelineConfig) -> Iterator[str]:
    """Yield a message for each setting that prevents the adoption of a table."""
    adopted = sorted(name for name, table in config.tables.items() if table.adopt is not None)
    if not adopted:
        return
    setting = f"{_TABLE}<collection>.adopt"
    if not CONNECTORS[config.source.connector].adoptable:
        yield (
            f"{setting}: only tables of PostgresDebeziumSource can be adopted: MySQL's are ordered "
            "by `_event_seq` or binlog names as text, which is not the order of the log. Remove "
            "it, and load them into another lakeingest.target.path"
        )
    not_hudi = [name for name in adopted if config.format_of(name) != "hudi"]
    if not_hudi:
        yield (
            f"{setting}: Hudi Streamer wrote tables of Hudi; set {_TABLE}<collection>.format=hudi "
            f"for {', '.join(not_hudi)}"
        )
    unread = [name for name in adopted if not config.source.selects(name)]
    if unread:
        yield (
            f"{setting}: no topic of {', '.join(unread)} is read, so it would receive no further "
            "changes. Correct the name, lakeingest.source.topic.prefix or lakeingest.source.topics"
        )
    if not config.deletes_are_hard("hudi"):
        yield (
            f"{setting}: Hudi removes a deleted row from tables of Hudi Streamer's for good. Set "
            "lakeingest.deletes=hard, which keeps the positions of deleted rows in a table beside"
        )


def _checkpoints(config: PipelineConfig) -> Iterator[str]:
    for name, table in config.tables.items():
        if table.checkpoint is None:
            continue
        setting = f"{_TABLE}{name}.checkpoint"
        if table.adopt is None:
            yield (
                f"{setting} goes with a table that is adopted: add {_TABLE}{name}"
                ".adopt=hudi-streamer, or remove it"
            )
        try:
            topic = Checkpoint.parse(table.checkpoint).topic
        except ConfigError as error:
            yield f"{setting}: {error}"
            continue
        if topic != config.source.names.topic(name):
            yield (
                f"{setting} is of another topic than {name}, whose changes are read from "
                f"<prefix>.{name}. Correct it, lakeingest.source.topic.prefix or the table's name"
            )
