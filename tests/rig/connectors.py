"""Settings of Debezium's connectors as the rig runs them.

Everything that this library needs is on: transaction metadata, truncates, tombstones, one partition
for the transaction topic and more than one for data. What Connect keeps for others is off: data
topics keep their records for ever, and nothing is sent when nothing happens.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from zlib import crc32

from tests.rig.mariadb import PASSWORD as MARIADB_PASSWORD
from tests.rig.mariadb import USER as MARIADB_USER
from tests.rig.mariadb import MariadbServer
from tests.rig.plugins import AVRO_CONVERTER
from tests.rig.postgres import USER as POSTGRES_USER
from tests.rig.postgres import PostgresServer

__all__ = ["Capture", "Format"]

_JSON = "org.apache.kafka.connect.json.JsonConverter"


class Format(Enum):
    """How keys and values are written."""

    JSON = "json"
    JSON_SCHEMA = "json-schema"
    AVRO = "avro"


@dataclass(frozen=True)
class Capture:
    """What a connector is to capture and how it writes it; each method is for one database.

    Args:
        prefix: Of the topics; a replication slot and a publication are named after it.
        tables: Regular expressions with commas, of ``schema.table`` in PostgreSQL and of
            ``database.table`` in MariaDB; None for all tables.
        written: How keys and values are written.
        registry: Address of the schema registry, for Avro.
        partitions: Of data topics.
        snapshot: Debezium's ``snapshot.mode``.
        signals: The table that Debezium reads its signals from, named as in ``tables``.
        more: Settings to add or to replace.
    """

    prefix: str
    tables: str | None = None
    written: Format = Format.JSON
    registry: str | None = None
    partitions: int = 3
    snapshot: str = "initial"
    signals: str | None = None
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def slot(self) -> str:
        """The name of the replication slot and of the publication in PostgreSQL."""
        return re.sub(r"\W", "_", self.prefix).lower()

    def postgres(self, server: PostgresServer, database: str) -> dict[str, str]:
        """Return the connector's settings for a database of a PostgreSQL cluster."""
        return {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "database.hostname": "127.0.0.1",
            "database.port": str(server.port),
            "database.user": POSTGRES_USER,
            "database.dbname": database,
            "plugin.name": "pgoutput",
            "slot.name": self.slot,
            "publication.name": self.slot,
            "publication.autocreate.mode": "all_tables" if self.tables is None else "filtered",
            **self._common(),
            **self.more,
        }

    def mariadb(self, server: MariadbServer, database: str, bootstrap: str) -> dict[str, str]:
        """Return the connector's settings for a MariaDB database.

        Args:
            server: The server.
            database: One of its databases.
            bootstrap: The broker, where the connector keeps the history of the schema.
        """
        return {
            "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
            "database.hostname": "127.0.0.1",
            "database.port": str(server.port),
            "database.user": MARIADB_USER,
            "database.password": MARIADB_PASSWORD,
            "database.include.list": database,
            # It is a replica, and two of one server must differ; the server itself is 1.
            "database.server.id": str(2 + crc32(self.prefix.encode()) % 1_000_000_000),
            "database.ssl.mode": "disable",
            # How often it looks whether it is still connected; a minute if not told.
            "connect.keep.alive.interval.ms": "1000",
            "schema.history.internal.kafka.bootstrap.servers": bootstrap,
            "schema.history.internal.kafka.topic": f"_history_{self.prefix}",
            **self._common(),
            **self.more,
        }

    def _common(self) -> dict[str, str]:
        quoted = re.escape(self.prefix)
        settings = {
            "tasks.max": "1",
            "topic.prefix": self.prefix,
            "provide.transaction.metadata": "true",
            "skipped.operations": "none",
            "tombstones.on.delete": "true",
            "snapshot.mode": self.snapshot,
            "poll.interval.ms": "20",
            "heartbeat.interval.ms": "0",
            "retriable.restart.connector.wait.ms": "1000",
            "topic.creation.default.replication.factor": "1",
            "topic.creation.default.partitions": str(self.partitions),
            "topic.creation.default.retention.ms": "-1",
            "topic.creation.groups": "single",
            # Transactions, and the schema's changes, whose topic has the bare prefix for a name.
            "topic.creation.single.include": f"{quoted}\\.transaction,{quoted}",
            "topic.creation.single.replication.factor": "1",
            "topic.creation.single.partitions": "1",
            "topic.creation.single.retention.ms": "-1",
            **_converters(self.written, self.registry),
        }
        if self.tables is not None:
            settings["table.include.list"] = self.tables
        if self.signals is not None:
            settings["signal.data.collection"] = self.signals
        return settings


def _converters(written: Format, registry: str | None) -> dict[str, str]:
    settings: dict[str, str] = {}
    for side in ("key.converter", "value.converter"):
        if written is Format.AVRO:
            assert registry is not None, "Avro needs a schema registry"
            settings[side] = AVRO_CONVERTER
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
