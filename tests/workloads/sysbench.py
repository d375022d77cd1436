"""sysbench's ``oltp_read_write`` without its range queries: rows come and go, and are as many.

A transaction reads ten rows by key, updates an indexed and another column, and deletes a row that
it inserts again under the same key. So the number of rows and the sum of their keys are the same at
every commit; a lake that shows a delete without its insert, or the insert twice, has another.

The clients here are Python, for both databases, and keep a witness of what they committed, which
the real sysbench does not. Text columns are ``varchar`` where sysbench has ``char``, whose trailing
blanks MariaDB keeps to itself.
"""

from __future__ import annotations

import random
from contextlib import closing
from typing import Any

from tests.workloads.crew import Client, Pace, Transaction
from tests.workloads.session import Session
from tests.workloads.source import Source, within
from tests.workloads.workload import CrewWorkload

TABLES = ("sbtest1", "sbtest2", "sbtest3", "sbtest4")
WITNESS = "witness"
POINT_SELECTS = 10


class Sysbench(CrewWorkload):
    """``oltp_read_write`` on one database.

    Args:
        source: The database, which must exist.
        seed: Repeats each client's choice of rows and values.
        pace: How many clients, how fast, how long.
        rows: Rows per table.
    """

    def __init__(
        self,
        source: Source,
        seed: int = 1,
        pace: Pace = Pace(),  # noqa: B008 - frozen
        rows: int = 1_000,
    ) -> None:
        super().__init__(source, seed, pace)
        self._seed = seed
        self._clients = pace.clients
        self._rows = rows

    @property
    def captured(self) -> tuple[str, ...]:
        """Bare names of the tables that a connector is to capture."""
        return (*TABLES, WITNESS)

    def create(self) -> None:
        """Create the tables and their rows."""
        within(self._source, self._create)

    def violations(self) -> list[str]:
        """Return which tables have not the rows that they have at every commit."""
        return violations(self._source, self._rows)

    def turn(self, number: int) -> None:
        """Every turn is the same."""

    def perform(self, transaction: Transaction, turn: Any) -> None:
        """Read, update, delete and insert in one of the tables."""
        transaction.step, transaction.witnessed = "read and write", True
        rng, session, client = transaction.rng, transaction.session, transaction.client
        table = rng.choice(TABLES)
        for _ in range(POINT_SELECTS):
            session.row(f"SELECT c FROM {table} WHERE id = %s", self._any(rng))
        transaction.update_one(f"UPDATE {table} SET k = k + 1 WHERE id = %s", self._any(rng))
        transaction.update_one(f"UPDATE {table} SET c = %s WHERE id = %s", _c(rng), self._any(rng))
        again = self._any(rng)
        transaction.delete(f"DELETE FROM {table} WHERE id = %s", again)
        row = (again, self._any(rng), _c(rng), _pad(rng))
        transaction.insert(f"INSERT INTO {table} VALUES (%s, %s, %s, %s)", *row)
        transaction.note("delete and insert")
        witnessed = f"UPDATE {WITNESS} SET n = %s WHERE client = %s"
        transaction.update_one(witnessed, client.next, client.number)

    def settle(self, session: Session, client: Client) -> None:
        """Read from the witness how far the client is."""
        newest = f"SELECT n FROM {WITNESS} WHERE client = %s"
        client.next = session.value(newest, client.number) + 1

    def _create(self, session: Session) -> None:
        rng = random.Random(self._seed)
        for table in TABLES:
            session.execute(
                f"CREATE TABLE {table} (id int PRIMARY KEY, k int NOT NULL,"
                " c varchar(120) NOT NULL, pad varchar(60) NOT NULL)"
            )
            session.execute(f"CREATE INDEX {table}_k ON {table} (k)")
            for number in range(1, self._rows + 1):
                row = (number, self._any(rng), _c(rng), _pad(rng))
                session.execute(f"INSERT INTO {table} VALUES (%s, %s, %s, %s)", *row)
        session.execute(f"CREATE TABLE {WITNESS} (client int PRIMARY KEY, n int)")
        for client in range(self._clients):
            session.execute(f"INSERT INTO {WITNESS} VALUES (%s, 0)", client)

    def _any(self, rng: random.Random) -> int:
        return rng.randint(1, self._rows)


def violations(source: Source, rows: int) -> list[str]:
    """Return which tables have not the ``rows`` rows that they have at every commit."""
    wanted = [rows, rows * (rows + 1) // 2]
    with closing(source.session()) as session:
        found = {table: [int(value or 0) for value in _counted(session, table)] for table in TABLES}
        session.rollback()
    return [
        f"{table} has count and sum of ids {has}, not {wanted}"
        for table, has in found.items()
        if has != wanted
    ]


def _counted(session: Session, table: str) -> tuple[int, int]:
    count, total = session.rows(f"SELECT count(*), sum(id) FROM {table}")[0]
    return count, total


def _c(rng: random.Random) -> str:
    return "-".join(f"{rng.randrange(10**11):011}" for _ in range(10))


def _pad(rng: random.Random) -> str:
    return "-".join(f"{rng.randrange(10**11):011}" for _ in range(5))
