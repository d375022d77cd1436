"""Find contradictions between the parts of a pipeline's configuration.

Each part is valid on its own. A run would find the contradictions later, most of them only after it
has started Spark and queried the source. This module returns all contradictions at once. Each
message names its keys, because a contradiction is never about one value alone, and says what to
set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lakeingest.config.hudi.table_services import service_problems
from lakeingest.config.spelling import nearest
from lakeingest.config.streamer.checkpoint import Checkpoint
from lakeingest.connectors import CONNECTORS
from lakeingest.errors import ConfigError

if TYPE_CHECKING:
    from lakeingest.config.model.pipeline import PipelineConfig

_TABLE = "lakeingest.table."
_FILTERED = "lakeingest.transaction.filtered.collections"
_TIMEOUT_ACTION = "lakeingest.transaction.timeout.action={}"


def contradictions(config: PipelineConfig) -> list[str]:
    """Return one message per contradiction between the parts of ``config``, with the remedy."""
    return [
        *config.folders.problems(),
        *_names_with_prefix(config),
        *_order(config),
        *_adoption(config),
        *_checkpoints(config),
        *service_problems(config.target.hudi_writer_options(), config.target.hudi_table_type),
        *_new_snapshot(config),
        *_event_columns(config),
        *_maintenance(config),
    ]


def unread_tables(config: PipelineConfig) -> Iterator[str]:
    """Yield a warning for each table that has settings and whose topic lakeingest does not read.

    Most likely the table's name is misspelt. Without a list or a pattern lakeingest reads every
    topic of the prefix. Then only a run sees which topics exist, and there is no warning.
    """
    for collection in config.tables:
        if not config.source.selects(collection):
            yield f"table {collection} is not among the topics{_hint(collection, config)}"
    if "uncounted_collections" in config.referenced:
        return
    for collection in config.uncounted_collections:
        if not config.source.selects(collection):
            hint = _hint(collection, config)
            yield f"{_FILTERED}: {collection} is not among the topics{hint}"


def slow_versions(config: PipelineConfig) -> Iterator[str]:
    """Yield a warning where versions of transactions need a commit each, of about a second."""
    if config.commit_mode == "grouped":
        return
    if not config.divides_batches:
        yield (
            "lakeingest.commit.mode=per-transaction: Hudi tables, and Delta tables without "
            "deletion vectors, take about a second per transaction; a hundred transactions a "
            "second need Delta tables alone, with lakeingest.delta.deletion.vectors=true and "
            "lakeingest.delta.commit=direct"
        )
        return
    partitioned = [name for name, table in config.tables.items() if table.partition]
    if partitioned:
        yield (
            "lakeingest.commit.mode=per-transaction: a transaction that changes a partitioned "
            f"table takes about a second ({', '.join(partitioned)})"
        )


def _hint(collection: str, config: PipelineConfig) -> str:
    source = config.source
    if "topics" in source.referenced:
        return ""
    near = nearest(collection, [source.names.plain(topic) for topic in source.topics])
    return f"; did you mean {near}?" if near else ""


def _names_with_prefix(config: PipelineConfig) -> Iterator[str]:
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
            yield f"{_FILTERED}: {hint} begins with the topic prefix, which the names in END do not"


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


def _order(config: PipelineConfig) -> Iterator[str]:
    """Yield a message for each setting that gives no order, or needs missing transactions."""
    source, facts = config.source, CONNECTORS[config.source.connector]
    of_tables = [name for table in config.tables.values() for name in table.ordering_columns]
    columns = [*source.ordering_columns, *of_tables]
    if source.transaction_mode == "metadata" and not facts.counts_rows:
        yield (
            "BEGIN and END of YugabyteDB's gRPC connector are per tablet and name no tables, so "
            "nothing tells when a transaction is whole: set lakeingest.transaction.mode=none, or "
            "use the logical replication connector (yugabytedb)"
        )
    if source.is_whole and columns:
        yield (
            "ordering columns need lakeingest.transaction.mode=none: transactions are in the "
            "order of their commits. Remove the columns, or give up whole transactions"
        )
    if source.transaction_mode == "boundary":
        yield from _boundary(config)
    if config.transaction_timeout_action != "stop":
        yield from _in_part(config)
    if source.is_whole:
        return
    if facts.epochs_by_ends and not source.ordering_columns:
        yield (
            "lakeingest.transaction.mode=none: without the transaction topic nothing tells that "
            f"another {source.connector} server has taken over, whose positions start anew; set "
            "lakeingest.source.ordering.columns (source.ts_ms at least)"
        )
    if facts.partial_rows and not all(name.startswith("source.") for name in columns):
        yield (
            "an update of YugabyteDB's need not name a column: only fields of the source block "
            "(source.…) can order its rows; name one of these"
        )
    if needing := [*_needing_transactions(config)]:
        need, them = ("needs", "it") if len(needing) == 1 else ("need", "them")
        yield (
            f"{', '.join(needing)} {need} lakeingest.transaction.mode=metadata; "
            f"set that, or remove {them}"
        )


def _in_part(config: PipelineConfig) -> Iterator[str]:
    """Yield a message for each setting by which rows that come late would be lost or doubled."""
    action = _TIMEOUT_ACTION.format(config.transaction_timeout_action)
    if config.commit_mode != "grouped":
        yield (
            f"{action} needs lakeingest.commit.mode=grouped: the version of a transaction never "
            "gets rows that come later"
        )
    keyless = sorted(name for name, table in config.tables.items() if table.keyless != "stop")
    if keyless:
        yield (
            f"{action} needs a key in every table ({', '.join(keyless)}: none): a row without one "
            "that comes later cannot be told from other rows"
        )


def _boundary(config: PipelineConfig) -> Iterator[str]:
    """Yield a message for each setting that transactions without BEGIN and END do not allow."""
    source = config.source
    mode = "lakeingest.transaction.mode=boundary"
    if not CONNECTORS[source.connector].shows_transactions:
        yield (
            f"{mode}: the rows of a {source.connector} connector do not show which transaction "
            "they are of; set lakeingest.transaction.mode=metadata"
        )
    tables = config.tables.items()
    needing = [f"lakeingest.table.{name}.adopt" for name, table in tables if table.adopt]
    # Nothing numbers the rows of one COPY, which have one place in the log.
    needing += [
        f"lakeingest.table.{name}.keyless={table.keyless}"
        for name, table in tables
        if table.keyless != "stop"
    ]
    if source.missing_head == "accept":
        # Nothing shows that a part of a transaction is missing.
        needing.append("lakeingest.source.missing.head=accept")
    if source.replaces_tables:
        needing.append("lakeingest.source.snapshot.again=replace")
    if config.commit_mode != "grouped":
        # A version that holds all rows of its transactions would never get a row that is late.
        needing.append(f"lakeingest.commit.mode={config.commit_mode}")
    if config.transaction_timeout_action != "stop":
        needing.append(_TIMEOUT_ACTION.format(config.transaction_timeout_action))
    for setting in needing:
        yield f"{setting} needs lakeingest.transaction.mode=metadata, which has BEGIN and END"


def unseen_compression(config: PipelineConfig) -> Iterator[str]:
    """Yield a warning where rows alone do not show that MySQL has compressed a transaction."""
    source = config.source
    if source.transaction_mode == "boundary" and CONNECTORS[source.connector].compresses:
        yield (
            "lakeingest.transaction.mode=boundary: the server must have "
            "binlog_transaction_compression=OFF; without transaction metadata a compressed "
            "transaction does not show the order of its changes of a row"
        )


def _needing_transactions(config: PipelineConfig) -> Iterator[str]:
    """Yield the settings that need whole transactions."""
    for name, table in config.tables.items():
        if table.adopt:
            yield f"lakeingest.table.{name}.adopt"
        if table.keyless != "stop":
            # Equal rows are told apart, and `v = v + 1` is understood, within a transaction alone.
            yield f"lakeingest.table.{name}.keyless={table.keyless}"
    if config.metadata_columns == "hudi":
        yield "lakeingest.metadata.columns=hudi"
    if config.commit_max_transactions is not None:
        yield "lakeingest.commit.max.transactions"
    if config.commit_mode != "grouped":
        yield f"lakeingest.commit.mode={config.commit_mode}"
    if config.transaction_timeout_action != "stop":
        yield _TIMEOUT_ACTION.format(config.transaction_timeout_action)


def _new_snapshot(config: PipelineConfig) -> Iterator[str]:
    if config.source.replaces_tables and config.source.transaction_mode == "none":
        yield (
            "lakeingest.source.snapshot.again=replace needs whole transactions: set "
            "lakeingest.transaction.mode=metadata, or leave snapshot.again at stop"
        )


def _event_columns(config: PipelineConfig) -> Iterator[str]:
    """Yield why RFC-39's columns are impossible: none are defined, or no event fills them."""
    if not config.has_event_columns:
        return
    connector = config.source.connector
    if not CONNECTORS[connector].streamer_source:
        yield (
            "lakeingest.metadata.columns=hudi: Hudi Streamer has no tables of a "
            f"{connector} connector whose columns could be kept; set it to own, or remove it"
        )
    if config.source.replaces_tables:
        yield (
            "lakeingest.source.snapshot.again=replace: a new snapshot deletes the rows that it "
            "lacks without an event, so lakeingest.metadata.columns=hudi has no values for them; "
            "set one of the two back to its default"
        )


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
    tables = [name for name in adopted if not config.source.selects(name)]
    if tables:
        yield f"{setting}: {adopted_but_not_read(tables)}"
    if not config.deletes_are_hard("hudi"):
        yield (
            f"{setting}: Hudi removes a deleted row from tables of Hudi Streamer's for good. Set "
            "lakeingest.deletes=hard, which keeps the positions of deleted rows in a table beside"
        )


def adopted_but_not_read(tables: Sequence[str]) -> str:
    """Return what is wrong with adopted tables whose topics are not read, and what to do."""
    return (
        f"no topic of {', '.join(tables)} is read, so it would receive no further changes. "
        "Correct the name, lakeingest.source.topic.prefix or lakeingest.source.topics"
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


def _maintenance(config: PipelineConfig) -> Iterator[str]:
    if config.maintenance.deleted_values == "null" and "hudi" in config.formats():
        yield (
            "lakeingest.deletes.values=null: maintenance erases values of deleted rows in Delta "
            "tables alone; remove it, or keep the tables as Delta tables "
            "(lakeingest.target.format=delta)"
        )
    if config.maintenance.tombstone_hours is not None and config.source.transaction_mode == "none":
        yield (
            "lakeingest.tombstone.retention.hours: with lakeingest.transaction.mode=none nothing "
            "shows how old a deleted row is; remove it, and tombstones stay"
        )
