"""Settings of Debezium's connectors as the rig runs them.

Everything that this library needs is on: transaction metadata, truncates, tombstones, one partition
for the transaction topic and more than one for data. What Connect keeps for others is off: data
topics keep their records for ever, and nothing is sent when nothing happens.
"""

from __future__ import annotations

from enum import Enum

from tests.rig.mariadb import PASSWORD as MARIADB_PASSWORD
from tests.rig.mariadb import USER as MARIADB_USER
from tests.rig.mariadb import MariadbServer
from tests.rig.postgres import USER as POSTGRES_USER
from tests.rig.postgres import PostgresServer

__all__ = ["Format", "mariadb", "postgres"]

_JSON = "org.apache.kafka.connect.json.JsonConverter"
_AVRO = "io.confluent.connect.avro.AvroConverter"


class Format(Enum):
    """How keys and values are written."""

    JSON = "json"
    JSON_SCHEMA = "json-schema"
    AVRO = "avro"


def postgres(
    server: PostgresServer,
    database: str,
    prefix: str,
    *,
    tables: str | None = None,
    written: Format = Format.JSON,
    registry: str | None = None,
    partitions: int = 3,
    snapshot: str = "initial",
    signals: str | None = None,
    **more: str,
) -> dict[str, str]:
    """Return the settings of a connector for one database.

    Args:
        server: The cluster.
        database: One of its databases.
        prefix: Of the topics; the replication slot and the publication are named after it.
        tables: Regular expressions of ``schema.table``, with commas; None for all tables.
        written: How keys and values are written.
        registry: Address of the schema registry, for Avro.
        partitions: Of data topics.
        snapshot: Debezium's ``snapshot.mode``.
        signals: The table that Debezium reads its signals from, ``schema.table``.
        **more: Settings to add or to replace; a dot in a name is written as two underscores.
    """
    name = prefix.replace(".", "_").replace("-", "_").lower()
    return {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "database.hostname": "127.0.0.1",
        "database.port": str(server.port),
        "database.user": POSTGRES_USER,
        "database.dbname": database,
        "plugin.name": "pgoutput",
        "slot.name": name,
        "publication.name": name,
        "publication.autocreate.mode": "all_tables" if tables is None else "filtered",
        "slot.max.retries": "60",
        "slot.retry.delay.ms": "1000",
        **_common(prefix, tables, written, registry, partitions, snapshot, signals),
        **_dotted(more),
    }


def mariadb(
    server: MariadbServer,
    database: str,
    prefix: str,
    bootstrap: str,
    *,
    tables: str | None = None,
    written: Format = Format.JSON,
    registry: str | None = None,
    partitions: int = 3,
    snapshot: str = "initial",
    signals: str | None = None,
    **more: str,
) -> dict[str, str]:
    """Return the settings of a connector for one database; arguments as for ``postgres``.

    Besides, ``bootstrap`` is the broker, where the connector keeps the history of the schema, and
    tables and signals are named ``database.table``.
    """
    return {
        "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
        "database.hostname": "127.0.0.1",
        "database.port": str(server.port),
        "database.user": MARIADB_USER,
        "database.password": MARIADB_PASSWORD,
        "database.include.list": database,
        # A replica's number: two connectors of one server must differ, and the server is 1.
        "database.server.id": str(2 + sum(prefix.encode()) * 7919 % 1_000_000),
        "database.ssl.mode": "disable",
        "schema.history.internal.kafka.bootstrap.servers": bootstrap,
        "schema.history.internal.kafka.topic": f"_history_{prefix}",
        **_common(prefix, tables, written, registry, partitions, snapshot, signals),
        **_dotted(more),
    }


def _common(
    prefix: str,
    tables: str | None,
    written: Format,
    registry: str | None,
    partitions: int,
    snapshot: str,
    signals: str | None,
) -> dict[str, str]:
    quoted = prefix.replace(".", "\\.")
    settings = {
        "tasks.max": "1",
        "topic.prefix": prefix,
        "provide.transaction.metadata": "true",
        "skipped.operations": "none",
        "tombstones.on.delete": "true",
        "snapshot.mode": snapshot,
        "poll.interval.ms": "20",
        "heartbeat.interval.ms": "0",
        "errors.max.retries": "-1",
        "retriable.restart.connector.wait.ms": "1000",
        "topic.creation.default.replication.factor": "1",
        "topic.creation.default.partitions": str(partitions),
        "topic.creation.default.retention.ms": "-1",
        "topic.creation.groups": "single",
        # Transactions, and the changes of the schema, whose topic has the bare prefix for a name.
        "topic.creation.single.include": f"{quoted}\\.transaction,{quoted}",
        "topic.creation.single.replication.factor": "1",
        "topic.creation.single.partitions": "1",
        **_converters(written, registry),
    }
    if tables is not None:
        settings["table.include.list"] = tables
    if signals is not None:
        settings["signal.data.collection"] = signals
    return settings


def _converters(written: Format, registry: str | None) -> dict[str, str]:
    settings: dict[str, str] = {}
    for side in ("key.converter", "value.converter"):
        if written is Format.AVRO:
            assert registry is not None, "Avro needs a schema registry"
            settings[side] = _AVRO
            settings[f"{side}.schema.registry.url"] = registry
            # Else a NULL in a column with a default is written as the default.
            settings[f"{side}.ignore.default.for.nullables"] = "true"
        else:
            settings[side] = _JSON
            settings[f"{side}.schemas.enable"] = str(written is Format.JSON_SCHEMA).lower()
            settings[f"{side}.replace.null.with.default"] = "false"
    if written is Format.AVRO:
        settings["schema.name.adjustment.mode"] = "avro"
    return settings


def _dotted(more: dict[str, str]) -> dict[str, str]:
    return {name.replace("__", "."): value for name, value in more.items()}
