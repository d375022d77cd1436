"""One client's connection, the same for PostgreSQL and MariaDB, and what their errors mean.

A workload is written once in the SQL that both understand. Both drivers speak DB-API with ``%s``,
so nothing is needed between them but a name for each error's consequence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Protocol

Row = Sequence[Any]


class Trouble(Enum):
    """What an error of the database means for the client."""

    CONFLICT = "the transaction is rolled back; another attempt may succeed"
    LOST = "the connection is gone"
    BUG = "the workload is wrong"


class ConflictError(Exception):
    """What a step found was changed under its feet: roll back and try again."""


class NothingToDoError(Exception):
    """A step found no row of the sort it needs."""


class Cursor(Protocol):
    """The part of a DB-API cursor that is used."""

    @property
    def rowcount(self) -> int:
        """Rows that the last statement touched."""

    def execute(self, query: str, args: Sequence[Any] | None = None, /) -> Any:
        """Run one statement."""

    def fetchone(self) -> Any:
        """Return the next row or None."""

    def fetchall(self) -> Any:
        """Return all rows."""


class Connection(Protocol):
    """The part of a DB-API connection that is used."""

    def cursor(self) -> Any:
        """Return a cursor."""

    def commit(self) -> None:
        """Commit."""

    def rollback(self) -> None:
        """Roll back."""

    def close(self) -> None:
        """Close."""


class Session:
    """A connection with transactions begun by the first statement.

    Args:
        connection: An open connection without autocommit.
        judge: Says what an error means.
    """

    def __init__(
        self, connection: Connection, judge: Callable[[Exception, Connection], Trouble]
    ) -> None:
        self._connection = connection
        self._judge = judge
        self._cursor: Cursor = connection.cursor()

    def execute(self, statement: str, *values: Any) -> int:
        """Run a statement and return how many rows it touched."""
        self._cursor.execute(statement, values or None)
        return self._cursor.rowcount

    def rows(self, statement: str, *values: Any) -> list[Row]:
        """Return all rows of a query."""
        self._cursor.execute(statement, values or None)
        return list(self._cursor.fetchall())

    def row(self, statement: str, *values: Any) -> Row | None:
        """Return the first row of a query, None if there is none."""
        found = self.rows(statement, *values)
        return found[0] if found else None

    def value(self, statement: str, *values: Any) -> Any:
        """Return the only value of the only row of a query."""
        found = self.row(statement, *values)
        assert found is not None, f"no row: {statement}"
        return found[0]

    def commit(self) -> None:
        """Commit what was done since the last commit or rollback."""
        self._connection.commit()

    def rollback(self) -> None:
        """Forget what was done since the last commit or rollback."""
        self._connection.rollback()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def judge(self, error: Exception) -> Trouble:
        """Return what ``error``, raised by this session, means."""
        if isinstance(error, ConflictError):
            return Trouble.CONFLICT
        return self._judge(error, self._connection)
