"""The shop's tables: those of the recorded runs, and ``samples`` for the types they lack.

Rows there before the run give the connector an initial snapshot to take. ``documents`` has wide
columns stored out of line (TOAST) and the default replica identity, so that an update says nothing
of those it did not touch. ``samples`` has no column of a time of day: without a schema in the
records it arrives as a plain number, so no text that was declared for it can be right.
"""

from __future__ import annotations

import json
import random

from tests.workloads.session import Session
from tests.workloads.shop.values import long_text
from tests.workloads.source import Source

CAPTURED = (
    "bulk",
    "carts",
    "customers",
    "documents",
    "ledger",
    "order_lines",
    "orders",
    "samples",
    "stock_log",
    "txlog",
)
"""What a connector is to capture."""

EXCLUDED = "scratch"
"""What it is not to capture."""

SIGNAL = "debezium_signal"
"""Where an incremental snapshot is asked for."""

CUSTOMERS, DOCUMENTS, LEDGERS = 300, 60, 8

_POSTGRES = (
    """CREATE TABLE customers (id bigint PRIMARY KEY, name varchar(60) NOT NULL,
       email varchar(80), tier smallint DEFAULT 1, spent_cents bigint NOT NULL DEFAULT 0,
       active boolean, prefs jsonb, updated_at timestamptz)""",
    """CREATE TABLE orders (id bigint PRIMARY KEY, customer_id bigint NOT NULL,
       status varchar(20) NOT NULL, line_count integer NOT NULL, total_cents bigint NOT NULL,
       amount numeric(12,2), discount numeric(5,2) DEFAULT 1.25, placed_on date,
       placed_at timestamp, note varchar(200))""",
    "CREATE INDEX ON orders (customer_id)",
    """CREATE TABLE order_lines (order_id bigint, line_no integer, sku varchar(20),
       qty integer NOT NULL, price_cents bigint NOT NULL, PRIMARY KEY (order_id, line_no))""",
    """CREATE TABLE documents (id bigint PRIMARY KEY, n integer NOT NULL, title varchar(80),
       body text, extra text)""",
    "ALTER TABLE documents ALTER body SET STORAGE EXTERNAL, ALTER extra SET STORAGE EXTERNAL",
    """CREATE TABLE samples (id bigint PRIMARY KEY, small smallint, whole integer,
       approx double precision, single real, exact numeric(20,6), day date, moment timestamp,
       instant timestamptz, flag boolean, raw bytea, doc json, docb jsonb, token uuid,
       words text[], numbers integer[], label varchar(200))""",
    "CREATE TABLE carts (id bigint PRIMARY KEY, customer_id bigint, items integer)",
    "CREATE TABLE stock_log (id bigint PRIMARY KEY, sku varchar(20), delta integer)",
    "CREATE TABLE bulk (id bigint PRIMARY KEY, batch integer, v integer)",
    "CREATE TABLE ledger (id integer PRIMARY KEY, revenue_cents bigint, n bigint)",
    """CREATE TABLE txlog (client integer, seq bigint, kind varchar(30),
       PRIMARY KEY (client, seq))""",
    "CREATE TABLE scratch (id bigint PRIMARY KEY, v integer)",
    """CREATE TABLE debezium_signal (id varchar(64) PRIMARY KEY, type varchar(32) NOT NULL,
       data varchar(2048))""",
)

_MARIADB = (
    """CREATE TABLE customers (id bigint PRIMARY KEY, name varchar(60) NOT NULL,
       email varchar(80), tier smallint DEFAULT 1, spent_cents bigint NOT NULL DEFAULT 0,
       active tinyint(1), prefs json, updated_at timestamp(6) NULL)""",
    """CREATE TABLE orders (id bigint PRIMARY KEY, customer_id bigint NOT NULL,
       status varchar(20) NOT NULL, line_count int NOT NULL, total_cents bigint NOT NULL,
       amount decimal(12,2), discount decimal(5,2) DEFAULT 1.25, placed_on date,
       placed_at datetime(6), note varchar(200), KEY (customer_id))""",
    """CREATE TABLE order_lines (order_id bigint, line_no int, sku varchar(20),
       qty int NOT NULL, price_cents bigint NOT NULL, PRIMARY KEY (order_id, line_no))""",
    """CREATE TABLE documents (id bigint PRIMARY KEY, n int NOT NULL, title varchar(80),
       body longtext, extra longtext)""",
    """CREATE TABLE samples (id bigint PRIMARY KEY, small smallint, whole int,
       approx double, single double, exact decimal(20,6), day date, moment datetime(6),
       instant timestamp(6) NULL, flag tinyint(1), raw varbinary(64), doc json, docb json,
       token char(36), words json, numbers json, label varchar(200))""",
    "CREATE TABLE carts (id bigint PRIMARY KEY, customer_id bigint, items int)",
    "CREATE TABLE stock_log (id bigint PRIMARY KEY, sku varchar(20), delta int)",
    "CREATE TABLE bulk (id bigint PRIMARY KEY, batch int, v int)",
    "CREATE TABLE ledger (id int PRIMARY KEY, revenue_cents bigint, n bigint)",
    "CREATE TABLE txlog (client int, seq bigint, kind varchar(30), PRIMARY KEY (client, seq))",
    "CREATE TABLE scratch (id bigint PRIMARY KEY, v int)",
    """CREATE TABLE debezium_signal (id varchar(64) PRIMARY KEY, type varchar(32) NOT NULL,
       data varchar(2048))""",
)

_EMPTY = " CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"


def create_tables(source: Source, session: Session) -> None:
    """Create all tables, empty."""
    if source.family == "postgresql":
        for statement in _POSTGRES:
            session.execute(statement)
        return
    for statement in _MARIADB:
        # A binary collation: 'a' and 'A ' are different values, as they are in the lake.
        session.execute(statement + _EMPTY)


def fill_tables(source: Source, session: Session, seed: int, bulk: int) -> None:
    """Insert the rows that the connector's initial snapshot finds."""
    rng = random.Random(seed)
    for number in range(1, CUSTOMERS + 1):
        session.execute(
            "INSERT INTO customers VALUES (%s, %s, %s, %s, 0, %s, %s, %s)",
            number,
            f"Customer {number}",
            f"c{number}@example.org",
            number % 4,
            number % 3 != 0,
            json.dumps({"n": number, "lang": "en"}),
            source.pick(postgresql=_CREATED + "+00", mariadb=_CREATED),
        )
    for number in range(1, DOCUMENTS + 1):
        session.execute(
            "INSERT INTO documents VALUES (%s, 0, %s, %s, %s)",
            number,
            f"Doc {number}",
            long_text(rng),
            long_text(rng),
        )
    for number in range(1, LEDGERS + 1):
        session.execute("INSERT INTO ledger VALUES (%s, 0, 0)", number)
    if bulk:
        insert_bulk(source, session, 1, bulk, batch=0)


def insert_bulk(source: Source, session: Session, first: int, rows: int, batch: int) -> int:
    """Insert ``rows`` rows into bulk, ids from ``first``, in one statement."""
    numbers = source.pick(
        postgresql=f"generate_series({first}, {first + rows - 1}) AS s(n)",
        mariadb=f"(SELECT seq AS n FROM seq_{first}_to_{first + rows - 1}) AS s",
    )
    return session.execute(f"INSERT INTO bulk SELECT n, {batch}, n FROM {numbers}")


_CREATED = "2026-01-02 03:04:05.678901"
