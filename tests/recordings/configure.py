"""A pipeline configuration for a recorded run, and what a checker must know about its tables.

Schemas are declared from the source's own types, never from the events: a wrongly decoded value
must meet a column type that was decided without looking at it.
"""

from __future__ import annotations

import json
from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from lakeingest.demo import demo_folder
from tests.config.settings import recorded
from tests.recordings.oracle import Oracle

Schema = Mapping[str, str]
"""Spark DDL type per column, in the order of the source."""

KEYS: Mapping[str, tuple[str, ...]] = {
    "order_lines": ("order_id", "line_no"),
    "txlog": ("client", "seq"),
    "pgbench_accounts": ("aid",),
    "pgbench_branches": ("bid",),
    "pgbench_tellers": ("tid",),
    "pgbench_history_w": ("client", "n"),
    "witness": ("client",),
}
"""Primary keys of the sources' tables; every other one is keyed by ``id``."""

SPARK_TYPES: Mapping[str, str] = {
    "bigint": "BIGINT",
    "integer": "INT",
    "smallint": "SMALLINT",
    "boolean": "BOOLEAN",
    "character varying": "STRING",
    "character": "STRING",
    "text": "STRING",
    "jsonb": "STRING",
    "date": "DATE",
    "timestamp without time zone": "TIMESTAMP_NTZ",
    "timestamp with time zone": "TIMESTAMP",
    "real": "FLOAT",
    "double precision": "DOUBLE",
    "bytea": "BINARY",
    "json": "STRING",
    "uuid": "STRING",
    # MariaDB's, without their length. tinyint(1): Debezium sends 1 and 0 as int16.
    "tinyint": "SMALLINT",
    "int": "INT",
    "char": "STRING",
    "varchar": "STRING",
    "longtext": "STRING",
    "varbinary": "BINARY",
    "double": "DOUBLE",
    "datetime": "TIMESTAMP_NTZ",
    "timestamp": "TIMESTAMP",
}
"""Spark type of each source's types in the runs; numerics need their precision, see below."""

DECIMALS: Mapping[str, str] = {"amount": "DECIMAL(12,2)", "discount": "DECIMAL(5,2)"}
"""Precision of the numeric columns, where types.json leaves it out, as in recorded runs."""

SHOP: Mapping[str, Schema] = {
    "customers": {
        "id": "BIGINT",
        "name": "STRING",
        "email": "STRING",
        "tier": "SMALLINT",
        "spent_cents": "BIGINT",
        # tinyint(1): Debezium sends 1 and 0 as int16, and the CSV says 1 and 0.
        "active": "SMALLINT",
        "prefs": "STRING",
        "updated_at": "TIMESTAMP",
    },
    "orders": {
        "id": "BIGINT",
        "customer_id": "BIGINT",
        "status": "STRING",
        "line_count": "INT",
        "total_cents": "BIGINT",
        "amount": "DECIMAL(12,2)",
        "discount": "DECIMAL(5,2)",
        "placed_on": "DATE",
        "placed_at": "TIMESTAMP_NTZ",
        "note": "STRING",
    },
    "order_lines": {
        "order_id": "BIGINT",
        "line_no": "INT",
        "sku": "STRING",
        "qty": "INT",
        "price_cents": "BIGINT",
    },
    "documents": {
        "id": "BIGINT",
        "n": "INT",
        "title": "STRING",
        "body": "STRING",
        "extra": "STRING",
    },
    "carts": {"id": "BIGINT", "customer_id": "BIGINT", "items": "INT"},
    "stock_log": {"id": "BIGINT", "sku": "STRING", "delta": "INT"},
    "bulk": {"id": "BIGINT", "batch": "INT", "v": "INT"},
    "ledger": {"id": "INT", "revenue_cents": "BIGINT", "n": "BIGINT"},
    "txlog": {"client": "INT", "seq": "BIGINT", "kind": "STRING"},
}
"""The shop on MariaDB, from its CREATE TABLE statements; no types.json was recorded there."""


@dataclass(frozen=True)
class RecordedRun:
    """One recorded run in one format.

    Attributes:
        name: Name of the run, for messages and for the known exceptions.
        form: ``json``, ``json-schema`` or ``avro``.
        events: Folder with ``manifest.json`` and ``topics``.
        oracle: The source's truth.
        tables: The tables that a pipeline reads; empty: all.
    """

    name: str
    form: str
    events: Path
    oracle: Oracle
    tables: tuple[str, ...] = ()

    @cached_property
    def manifest(self) -> Mapping[str, Any]:
        """The recorder's own account of the run."""
        manifest: dict[str, Any] = json.loads((self.events / "manifest.json").read_text("utf-8"))
        return manifest

    @property
    def prefix(self) -> str:
        """Debezium's ``topic.prefix``."""
        return str(self.manifest["prefix"])

    @property
    def connector(self) -> str:
        """Connector family as ``lakeingest.source.connector`` names it."""
        kind = self.manifest["connector"]["connector.class"]
        return "mariadb" if "mariadb" in kind else "postgresql"

    @cached_property
    def namespace(self) -> str:
        """What stands before the table in a collection's name: schema or database."""
        if self.connector == "postgresql":
            return "public"
        return str(self.manifest["connector"]["database.include.list"])

    def collection(self, table: str) -> str:
        """Return the name of ``table`` in configuration, ``show`` and ``snapshot().table()``."""
        return f"{self.namespace}.{table}"

    @cached_property
    def schemas(self) -> Mapping[str, Schema]:
        """Declared columns per table, by bare table name."""
        types = self.oracle.types
        schemas = {
            table: dict(SHOP[table]) if types is None else spark_schema(types[table])
            for table in self.oracle.tables
        }
        # types.json was taken before the run, and ALTER TABLE adds this column in the middle.
        if "orders" in schemas and "channel" in self.oracle.final("orders").header:
            schemas["orders"]["channel"] = "STRING"
        return schemas

    def configuration(self, target: Path, **overrides: str) -> dict[str, str]:
        """Return the properties of a pipeline that reads this run into ``target``.

        Args:
            target: Folder of the lake; need not exist.
            overrides: More properties; underscores stand for dots, ``lakeingest.`` is put before.
        """
        properties = {
            **recorded(self.events, target, self.prefix),
            "lakeingest.pipeline.name": self.name,
            "lakeingest.source.connector": self.connector,
            "lakeingest.target.format": "delta",
        }
        if self.form == "avro":
            properties["lakeingest.source.format"] = "avro"
        if self.tables:
            topics = (f"{self.prefix}.{self.collection(table)}" for table in self.tables)
            properties["lakeingest.source.topics"] = ",".join(topics)
        # With schemas in the records the declared ones would hide a wrong decision of the decoder.
        if self.form == "json":
            properties |= declared(self.schemas, self.collection)
        return properties | overridden(overrides)


def declared(schemas: Mapping[str, Schema], collection: Callable[[str], str]) -> dict[str, str]:
    """Return the properties that declare tables, by bare name."""
    return {
        f"lakeingest.table.{collection(table)}.schema": ", ".join(
            f"{name} {kind}" for name, kind in schema.items()
        )
        for table, schema in schemas.items()
    }


def overridden(overrides: Mapping[str, str]) -> dict[str, str]:
    """Return properties whose keys were written as Python's names."""
    return {f"lakeingest.{key.replace('_', '.')}": value for key, value in overrides.items()}


def recorded_run(folder: Path, form: str = "json") -> RecordedRun:
    """Return the run in ``folder``, which holds ``<form>/`` and ``oracle/``."""
    return RecordedRun(folder.name, form, folder / form, Oracle(folder / "oracle"))


def run_folder(path: str) -> Path:
    """Return the folder of a recorded run that a command line names.

    Raises:
        ArgumentTypeError: It is not one.
    """
    folder = Path(path).resolve()
    if not (folder / "oracle").is_dir():
        message = f"{folder} holds no recorded run: it has no folder oracle/"
        raise ArgumentTypeError(message)
    return folder


def packaged_run() -> RecordedRun:
    """Return the run that ships with the package, with the oracle that was recorded beside it."""
    oracle = Path(__file__).parent / "data" / "pg-shop-small" / "oracle"
    return RecordedRun("pg-shop-small", "json", demo_folder(), Oracle(oracle))


def spark_schema(types: Mapping[str, str]) -> dict[str, str]:
    """Return the Spark DDL types for a table's types at the source."""
    return {
        column: DECIMALS[column] if kind == "numeric" else spark_type(kind)
        for column, kind in types.items()
    }


def spark_type(kind: str) -> str:
    """Return the Spark DDL type for one type of the source, such as ``numeric(5,2)``."""
    if kind.endswith("[]"):
        return f"ARRAY<{spark_type(kind.removesuffix('[]'))}>"
    name, _, size = kind.partition("(")
    if name in {"numeric", "decimal"}:
        return f"DECIMAL({size}"
    return SPARK_TYPES[name]


def key_of(table: str) -> tuple[str, ...]:
    """Return the primary key columns of ``table``."""
    return KEYS.get(table, ("id",))


def write_properties(path: Path, properties: Mapping[str, str]) -> Path:
    """Write ``properties`` as a ``.properties`` file and return its path."""
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()), "utf-8")
    return path
