"""A MariaDB server of its own, with the binary log that Debezium reads.

What is killed is the server and not the machine, so what a commit wrote is kept by the kernel: the
logs are flushed to it at each commit and never forced to the disk, and a ``kill -9`` loses no
commit all the same. The binary log and the tables agree after recovery, as MariaDB promises for
``sync_binlog=1``, because the kernel keeps the order in which they were written.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Any

import pymysql
from pymysql.connections import Connection

from tests.rig.debian import Programs, programs
from tests.rig.process import Server

__all__ = ["PASSWORD", "USER", "MariadbServer"]

USER = "rig"
PASSWORD = "hush-hush"

_PACKAGES = ("mariadb-server-core", "mariadb-client")
_PROGRAMS = ("mariadbd", "mariadb-install-db", "mariadb-binlog", "my_print_defaults")
_SETTINGS = (
    "--server-id=1",
    "--log-bin=binlog",
    "--binlog-format=ROW",
    "--binlog-row-image=FULL",
    "--binlog-row-metadata=FULL",
    "--gtid-strict-mode=ON",
    "--sync-binlog=0",
    "--innodb-flush-log-at-trx-commit=2",
    "--innodb-flush-method=nosync",
    "--innodb-buffer-pool-size=128M",
    "--innodb-log-file-size=64M",
    "--character-set-server=utf8mb4",
    "--bind-address=127.0.0.1",
    "--skip-name-resolve",
    "--skip-log-error",
)
# Of the user that applies its statements, and of Debezium: one for both.
_ACCOUNT = f"""\
FLUSH PRIVILEGES;
CREATE USER '{USER}'@'%' IDENTIFIED BY '{PASSWORD}';
GRANT ALL PRIVILEGES ON *.* TO '{USER}'@'%' WITH GRANT OPTION;
"""


class MariadbServer(Server):
    """A server on loopback; ``USER`` with ``PASSWORD`` may do everything, and replicate.

    Its folder's path must have no space in it: ``mariadb-install-db`` does not take one.
    """

    def connect(self, database: str | None = None, **settings: Any) -> Connection[Any]:
        """Return a connection of PyMySQL; ``autocommit=True`` and the like may be given."""
        return pymysql.connect(
            host="127.0.0.1",
            port=self.port,
            user=USER,
            password=PASSWORD,
            database=database,
            charset="utf8mb4",
            **{"connect_timeout": 10, **settings},
        )

    def create_database(self, database: str) -> None:
        """Create an empty database."""
        with closing(self.connect()) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE `{database}`")

    def binlogs(self) -> list[Path]:
        """Return the files of the binary log, in their order."""
        return sorted(self._data.glob("binlog.[0-9]*"))

    def read_binlog(self, *arguments: str) -> str:
        """Return what ``mariadb-binlog`` prints for the whole binary log; see its options."""
        command = [str(_programs().path("mariadb-binlog")), "--no-defaults", *arguments]
        return _run([*command, *map(str, self.binlogs())])

    def open_binlog(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Start ``mariadb-binlog`` on one file of the binary log, to be read as it prints."""
        command = [str(_programs().path("mariadb-binlog")), "--no-defaults", *arguments]
        return subprocess.Popen(
            [*command, str(self._data / name)],
            env=_programs().environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def fetch(self) -> None:
        _programs()

    def _prepare(self) -> None:
        if (self._data / "mysql").is_dir():
            return
        account = self._folder / "account.sql"
        account.write_text(_ACCOUNT, encoding="utf-8")
        base = _programs().root / "usr"
        command = [str(_programs().path("mariadb-install-db")), "--no-defaults"]
        command += [f"--basedir={base}", f"--datadir={self._data}", f"--extra-file={account}"]
        command += ["--auth-root-authentication-method=normal", "--skip-test-db", *_as_root()]
        _run(command)

    def _command(self) -> list[str]:
        base = _programs().root / "usr"
        return [
            str(_programs().path("mariadbd")),
            "--no-defaults",
            f"--basedir={base}",
            f"--datadir={self._data}",
            f"--lc-messages-dir={base / 'share' / 'mysql'}",
            f"--port={self.port}",
            # Paths of sockets are short, and a test's folder may be deep: relative to the data.
            "--socket=mariadb.sock",
            "--pid-file=mariadb.pid",
            *_SETTINGS,
            *_as_root(),
        ]

    def _environment(self) -> dict[str, str]:
        return _programs().environment()

    def _answers(self) -> bool:
        # Whoever has the port may accept a connection and never say a word.
        with (
            suppress(pymysql.err.OperationalError),
            closing(self.connect(connect_timeout=2, read_timeout=2)),
        ):
            return True
        return False

    @property
    def _data(self) -> Path:
        return self._folder / "data"


@cache
def _programs() -> Programs:
    return programs(_PACKAGES, _PROGRAMS)


def _as_root() -> list[str]:
    """Return the option that lets it run as root, which it does only when told."""
    return [] if os.geteuid() else ["--user=root"]


def _run(command: list[str]) -> str:
    run = subprocess.run(
        command,
        env=_programs().environment(),
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if run.returncode:
        message = f"{command[0]} failed: {run.stdout[-2000:]}{run.stderr[-2000:]}"
        raise RuntimeError(message)
    return run.stdout
