"""A database under a workload: how to connect, and where PostgreSQL and MariaDB differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import psycopg
import pymysql
from psycopg import errors
from pymysql.constants import CLIENT

from tests.workloads.session import Connection, Session, Trouble

Family = Literal["postgresql", "mariadb"]

_POSTGRES_CONFLICTS = (
    errors.DeadlockDetected,
    errors.SerializationFailure,
    errors.LockNotAvailable,
    errors.UniqueViolation,
    # A plan of a prepared statement from before ALTER TABLE.
    errors.FeatureNotSupported,
)
# deadlock, lock wait timeout, duplicate key, changed since last read, table definition changed
_MARIADB_CONFLICTS = frozenset({1213, 1205, 1062, 1020, 1412})
# gone away, lost, cannot connect, shutdown, killed, and what PyMySQL says of a closed socket
_MARIADB_LOST = frozenset({0, 2006, 2013, 2003, 2014, 2055, 1053, 1927, 1040})


class Server(Protocol):
    """What a workload needs of a server of the rig."""

    def connect(self, database: str = ..., **settings: Any) -> Any:
        """Return a new DB-API connection."""


@dataclass(frozen=True)
class Source:
    """One database of one server.

    Attributes:
        server: Where it is; it may be killed and come back.
        database: Its name.
        family: Which SQL it speaks.
    """

    server: Server
    database: str
    family: Family

    @property
    def namespace(self) -> str:
        """What stands before the table in a collection's name: schema or database."""
        return "public" if self.family == "postgresql" else self.database

    def pick(self, *, postgresql: str, mariadb: str) -> str:
        """Return the SQL for this family."""
        return postgresql if self.family == "postgresql" else mariadb

    def connect(self, **settings: Any) -> Any:
        """Return a new DB-API connection that tells times in UTC; ``settings`` are the driver's."""
        if self.family == "postgresql":
            if "replication" not in settings:
                settings.setdefault("options", "-c TimeZone=UTC -c DateStyle=ISO")
            return self.server.connect(self.database, **settings)
        settings = {"client_flag": CLIENT.FOUND_ROWS, **settings}
        settings.setdefault("init_command", "SET time_zone = '+00:00'")
        return self.server.connect(self.database, **settings)

    def session(self) -> Session:
        """Open a session that reads what is committed."""
        connection = self.connect()
        if self.family == "postgresql":
            session = Session(connection, _judge_postgres)
        else:
            session = Session(connection, _judge_mariadb)
            # InnoDB's default would let a plain read see an older state than a locking one.
            session.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
            # InnoDB sees no deadlock with a TRUNCATE in the circle of waiting: only time ends it.
            session.execute("SET SESSION innodb_lock_wait_timeout = 2, lock_wait_timeout = 2")
        session.commit()
        return session

    def is_down(self, error: Exception) -> bool:
        """Return whether ``error``, raised while connecting, may pass by waiting."""
        if self.family == "postgresql":
            return isinstance(error, psycopg.OperationalError)
        return isinstance(error, (pymysql.err.OperationalError, OSError))


def postgresql(server: Server, database: str) -> Source:
    """Return a PostgreSQL database as a source."""
    return Source(server, database, "postgresql")


def mariadb(server: Server, database: str) -> Source:
    """Return a MariaDB database as a source."""
    return Source(server, database, "mariadb")


def within(source: Source, work: Callable[[Session], None]) -> None:
    """Do ``work`` in one session and commit it."""
    session = source.session()
    try:
        work(session)
        session.commit()
    finally:
        session.close()


def _judge_postgres(error: Exception, connection: Connection) -> Trouble:
    if isinstance(connection, psycopg.Connection) and (connection.closed or connection.broken):
        return Trouble.LOST
    if isinstance(error, _POSTGRES_CONFLICTS):
        return Trouble.CONFLICT
    return Trouble.LOST if isinstance(error, errors.OperatorIntervention) else Trouble.BUG


def _judge_mariadb(error: Exception, _: Connection) -> Trouble:
    if isinstance(error, (OSError, pymysql.err.InterfaceError)):
        return Trouble.LOST
    if isinstance(error, pymysql.err.MySQLError) and error.args:
        if error.args[0] in _MARIADB_CONFLICTS:
            return Trouble.CONFLICT
        if error.args[0] in _MARIADB_LOST:
            return Trouble.LOST
    return Trouble.BUG
