"""What the benchmark runs on: pgbench's four tables, and how their events are laid out in topics.

The tables are those of the recorded run of pgbench (scale factor 1: 100,000 accounts, 10 tellers,
one branch; a history with the key ``(client, n)``), so that figures can be set beside a recorded
run. One branch means one hot key and two empty partitions, as in the real run: a fold or a merge
that depends on well-spread keys must show it here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

PREFIX = "bench"
SCHEMA = "public"
TRANSACTION_TOPIC = f"{PREFIX}.transaction"
DATA_PARTITIONS = 3
CLIENTS = 4
"""Transactions n, n+1, n+2, n+3 come from different clients, whose accounts are disjoint."""


@dataclass(frozen=True)
class Table:
    """One source table: columns as Spark DDL, primary key, and the column the witness adds up."""

    name: str
    columns: str
    key: tuple[str, ...]
    balance: str

    @property
    def collection(self) -> str:
        """The name in Debezium's transaction metadata."""
        return f"{SCHEMA}.{self.name}"

    @property
    def topic(self) -> str:
        """The topic of the table's events."""
        return f"{PREFIX}.{self.collection}"

    @property
    def column_types(self) -> dict[str, str]:
        """Column name to Spark type, in the order of the declaration."""
        return dict(re.findall(r"(\w+) (\w+)", self.columns))


ACCOUNTS = Table(
    "pgbench_accounts", "aid INT, bid INT, abalance INT, filler STRING", ("aid",), "abalance"
)
TELLERS = Table(
    "pgbench_tellers", "tid INT, bid INT, tbalance INT, filler STRING", ("tid",), "tbalance"
)
BRANCHES = Table("pgbench_branches", "bid INT, bbalance INT, filler STRING", ("bid",), "bbalance")
HISTORY = Table(
    "pgbench_history_w",
    "client INT, n BIGINT, tid INT, bid INT, aid INT, delta INT, mtime TIMESTAMP_NTZ",
    ("client", "n"),
    "delta",
)
TABLES = (ACCOUNTS, TELLERS, BRANCHES, HISTORY)
"""In the order in which a transaction writes them (three updates, one insert)."""

EVENTS_PER_TRANSACTION = len(TABLES)


def of_all_tables(step: Callable[[Table], None], *, parallel: bool = True) -> None:
    """Do a step for each table."""
    with ThreadPoolExecutor(len(TABLES) if parallel else 1) as pool:
        list(pool.map(step, TABLES))


@dataclass(frozen=True)
class Shape:
    """How much to generate. The same shape gives the same bytes."""

    transactions: int
    accounts: int = 100_000
    tellers: int = 10
    branches: int = 1
    seed: int = 1

    def __post_init__(self) -> None:
        """Refuse shapes whose accounts cannot be dealt evenly to the clients."""
        if self.accounts % CLIENTS:
            msg = f"accounts must be a multiple of {CLIENTS}: {self.accounts}"
            raise ValueError(msg)
        if min(self.transactions, self.accounts, self.tellers, self.branches) < 1:
            msg = f"every count must be at least 1: {self}"
            raise ValueError(msg)


@dataclass(frozen=True)
class EventFolder:
    """Where the parts of a generated log lie."""

    path: Path

    @property
    def transactions(self) -> str:
        """One row per transaction, with the balances after it: the truth."""
        return str(self.path / "transactions")

    @property
    def records(self) -> str:
        """The Kafka records, one folder per topic and partition."""
        return str(self.path / "records")

    @property
    def index(self) -> str:
        """Which offset belongs to which transaction; snapshot records belong to -1."""
        return str(self.path / "index")
