"""A PostgreSQL cluster of its own, for logical decoding.

What is killed is the server and not the machine, so what a commit wrote is kept by the kernel:
``fsync`` and full page writes are off, and a ``kill -9`` loses no commit all the same.

PostgreSQL refuses to run as root. Under root it runs in a user namespace where root's number is
another one: files stay root's, so the test's folders and the user's cache, closed to everyone else,
can be used as they are. Rejected: ``runuser`` to another user, who can reach neither.
"""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from tests.rig.debian import DebianPackageError, Programs, programs
from tests.rig.process import Server

__all__ = ["PostgresServer"]

USER = "postgres"

# Debian's package without a version is the newest of the release.
_PACKAGES = ("postgresql",)
_PROGRAMS = ("initdb", "postgres", "pgbench")
_SETTINGS = """\
listen_addresses = '127.0.0.1'
port = {port}
unix_socket_directories = ''
wal_level = logical
max_replication_slots = 20
max_wal_senders = 20
max_connections = 100
shared_buffers = 64MB
fsync = off
full_page_writes = off
wal_sender_timeout = 10s
"""
_NAMESPACE = ["unshare", "--user", "--map-user=1000"]


class PostgresServer(Server):
    """A cluster on loopback whose superuser ``postgres`` needs no password."""

    # Fast shutdown: the polite one waits until every client has gone.
    stop_signal: ClassVar[signal.Signals] = signal.SIGINT

    def dsn(self, database: str = "postgres") -> str:
        """Return the connection string of a database."""
        return make_conninfo(host="127.0.0.1", port=self.port, user=USER, dbname=database)

    def connect(
        self, database: str = "postgres", **settings: Any
    ) -> psycopg.Connection[tuple[Any, ...]]:
        """Return a connection of psycopg; ``autocommit=True`` and the like may be given."""
        return psycopg.connect(self.dsn(database), **settings)

    def create_database(self, database: str) -> None:
        """Create an empty database."""
        with self.connect(autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(database)))

    def pgbench(self, database: str, *arguments: str) -> subprocess.Popen[str]:
        """Start pgbench on a database, for instance with ``"-i"`` or ``"-c", "4", "-T", "10"``."""
        command = [str(_programs().path("pgbench")), "--host=127.0.0.1", f"--port={self.port}"]
        return subprocess.Popen(
            [*command, f"--username={USER}", *arguments, database],
            env=_programs().environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def fetch(self) -> None:
        _programs()
        _not_as_root()

    def _prepare(self) -> None:
        if not (self._data / "PG_VERSION").is_file():
            command = [str(_programs().path("initdb")), f"--pgdata={self._data}", "--no-sync"]
            command += [f"--username={USER}", "--auth=trust", "--encoding=UTF8", "--locale=C"]
            run = subprocess.run(
                [*_not_as_root(), *command],
                env=_programs().environment(),
                capture_output=True,
                text=True,
                check=False,
            )
            if run.returncode:
                message = f"PostgreSQL's folder was not made: {run.stdout}{run.stderr}"
                raise RuntimeError(message)
        settings = _SETTINGS.format(port=self.port)
        (self._data / "postgresql.auto.conf").write_text(settings, encoding="utf-8")

    def _command(self) -> list[str]:
        return [*_not_as_root(), str(_programs().path("postgres")), "-D", str(self._data)]

    def _environment(self) -> dict[str, str]:
        return _programs().environment()

    def _answers(self) -> bool:
        with suppress(psycopg.OperationalError), self.connect(connect_timeout=2):
            return True
        return False

    @property
    def _data(self) -> Path:
        return self._folder / "data"


@cache
def _programs() -> Programs:
    return programs(_PACKAGES, _PROGRAMS)


@cache
def _not_as_root() -> list[str]:
    """Return what stands before a command so that it does not run as root."""
    if os.geteuid():
        return []
    with suppress(OSError):
        run = subprocess.run([*_NAMESPACE, "true"], capture_output=True, check=False)
        if run.returncode == 0:
            return _NAMESPACE
    message = (
        "PostgreSQL does not run as root, and this machine gives root no user namespace "
        f"({' '.join(_NAMESPACE)}): run the tests as another user"
    )
    raise DebianPackageError(message)
