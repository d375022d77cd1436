"""What connectors differ in, besides how they name and order events: one row each.

Configuration, planning and applying ask these facts here. How a connector's events are read is code
and stands in ``envelope/``, one file per family. Rejected: a comparison with a connector's name
where a fact matters; a new connector then has to be added in ten places, and one is forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType


@dataclass(frozen=True)
class Connector:
    """Facts about one connector; the defaults are what most connectors do.

    Attributes:
        records_name: What its records call it, in ``source.connector``.
        name_parts: Number of parts, with dots between them, in the name of a table.
        counts_rows: Whether END names tables and counts their rows.
        epochs_by_ends: Whether positions start over when another server takes over, which only the
            ENDs of transactions show.
        partial_rows: Whether an update may leave out a column that did not change.
        ambiguous_nulls: Whether a NULL may stand for an unchanged value: only PostgreSQL stores
            values out of line (TOAST) and leaves them out of a change.
        implicit_values: Whether ADD COLUMN NOT NULL without DEFAULT gives old rows the type's zero.
        streamer_source: Hudi Streamer's class that reads it and writes RFC-39's columns; empty:
            there is none.
        shows_transactions: Whether a row alone shows its transaction, by which transactions are in
            the order of their commits (``Family.row_transaction``).
        adoptable: Whether tables of Hudi Streamer can be adopted: their rows are in the order of
            the log. MySQL's are ordered by ``_event_seq``, or by binlog names as text.
        compresses: Whether the server may log a transaction compressed; its rows then have one
            place (MySQL's ``binlog_transaction_compression``).
    """

    records_name: tuple[str, ...] = ()
    name_parts: int = 2
    counts_rows: bool = True
    epochs_by_ends: bool = False
    partial_rows: bool = False
    ambiguous_nulls: bool = False
    implicit_values: bool = False
    streamer_source: str = ""
    shows_transactions: bool = False
    adoptable: bool = False
    compresses: bool = False


_MYSQL = Connector(
    records_name=("mysql",),
    epochs_by_ends=True,
    implicit_values=True,
    streamer_source="MysqlDebeziumSource",
    shows_transactions=True,
)

CONNECTORS: Mapping[str, Connector] = MappingProxyType(
    {
        "postgresql": Connector(
            records_name=("postgresql",),
            ambiguous_nulls=True,
            streamer_source="PostgresDebeziumSource",
            shows_transactions=True,
            adoptable=True,
        ),
        "mysql": replace(_MYSQL, compresses=True),
        "mariadb": replace(_MYSQL, records_name=("mariadb", "mysql")),
        "sqlserver": Connector(records_name=("sqlserver",), name_parts=3),
        "oracle": Connector(records_name=("oracle",)),
        "db2": Connector(records_name=("db2",)),
        "yugabytedb": Connector(
            records_name=("postgresql", "yugabytedb"),
            partial_rows=True,
            streamer_source="PostgresDebeziumSource",
        ),
        "yugabytedb-grpc": Connector(
            records_name=("yugabytedb",), partial_rows=True, counts_rows=False
        ),
    }
)
"""By the value of ``lakeingest.source.connector``."""
