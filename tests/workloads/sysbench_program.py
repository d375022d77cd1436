"""The real sysbench, ``oltp_read_write`` without range queries, on MariaDB.

It commits as fast as the server can, with the statements that others measure with; but it ends at
the first lost connection, has no witness, and tells what it did only at its end. So it is run in
short slices, each of which ends in order and gives its account; one that the server's death cut
short gives none. ``Counts.committed`` is therefore what is known to be committed at the least.
"""

from __future__ import annotations

import re
import subprocess
import threading
import time
from typing import Protocol, cast

from tests.workloads.counts import Counts
from tests.workloads.crew import Pace
from tests.workloads.source import Source
from tests.workloads.sysbench import TABLES, violations

SLICE_SECONDS = 2

_COMMITTED = re.compile(r"^\s+transactions:\s+(\d+)", re.MULTILINE)
_IGNORED = re.compile(r"^\s+ignored errors:\s+(\d+)", re.MULTILINE)
_CONFLICTS = "--mysql-ignore-errors=1213,1020,1205"
_KNOCK_SECONDS = 0.2


class SysbenchServer(Protocol):
    """What is needed of the rig's MariaDB."""

    def sysbench(self, database: str, script: str, *arguments: str) -> subprocess.Popen[str]:
        """Start sysbench on a database."""


class SysbenchProgram:
    """The real sysbench on one MariaDB database.

    Args:
        source: The database, which must exist.
        seed: Repeats the choice of rows and values of a slice.
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
        assert source.family == "mariadb", "the rig has sysbench for MariaDB only"
        self._source = source
        self._seed = seed
        self._pace = pace
        self._rows = rows
        self._slices = 0
        self._over = threading.Event()
        self._counts = Counts()
        self._broken: Exception | None = None
        self._keeper = threading.Thread(target=self._keep_running, name="sysbench", daemon=True)

    @property
    def captured(self) -> tuple[str, ...]:
        """Bare names of the tables that a connector is to capture."""
        return TABLES

    @property
    def turns(self) -> int:
        """How many transactions are committed in slices that ended."""
        return self._counts.committed

    def create(self) -> None:
        """Create the tables and their rows."""
        said, code = self._run("prepare")
        if code:
            raise RuntimeError(said[-2000:])

    def start(self) -> None:
        """Begin."""
        self._keeper.start()

    def stop(self) -> Counts:
        """Let the slice end, and return what was done."""
        self._over.set()
        return self.finish()

    def finish(self, seconds: float | None = None) -> Counts:
        """Wait until the number of transactions that was asked for is done.

        Raises:
            TimeoutError: It is not after ``seconds``.
        """
        self._keeper.join(seconds)
        if self._keeper.is_alive():
            self._over.set()
            message = f"sysbench is not done after {seconds} s"
            raise TimeoutError(message)
        if self._broken is not None:
            raise self._broken
        return self._counts

    def violations(self) -> list[str]:
        """Return which invariants do not hold now; they hold at every commit."""
        return violations(self._source, self._rows)

    def _keep_running(self) -> None:
        began = time.monotonic()
        try:
            while not self._over.is_set() and self._left() > 0:
                self._slice()
        except Exception as error:  # noqa: BLE001 - told to whoever waits
            self._broken = error
        self._counts.seconds = time.monotonic() - began

    def _left(self) -> int:
        wanted = self._pace.transactions
        return 1 if wanted is None else wanted - self._counts.committed

    def _slice(self) -> None:
        self._slices += 1
        arguments = [
            *(f"--threads={self._pace.clients}", f"--time={SLICE_SECONDS}", _CONFLICTS),
            *("--range_selects=off", f"--rand-seed={self._seed * 1_000 + self._slices}"),
            f"--events={0 if self._pace.transactions is None else self._left()}",
        ]
        if self._pace.per_second:
            # Whole ones only: sysbench takes a part of one for none, and none for no limit.
            arguments.append(f"--rate={max(1, round(self._pace.per_second))}")
        said, code = self._run("run", *arguments)
        committed, ignored = _COMMITTED.search(said), _IGNORED.search(said)
        if code == 0 and committed and ignored:
            done = int(committed[1])
            self._counts.committed += done
            self._counts.conflicts += int(ignored[1])
            self._counts.steps["read and write"] += done
            self._counts.changes.update(insert=done, update=2 * done, delete=done)
            return
        if "onnect" not in said:
            message = f"sysbench failed: {said[-2000:]}"
            raise RuntimeError(message)
        self._counts.steps["slice without an account"] += 1
        self._counts.reconnects += self._pace.clients
        self._wait_for_the_server()

    def _wait_for_the_server(self) -> None:
        while not self._over.wait(_KNOCK_SECONDS):
            try:
                self._source.session().close()
            except Exception as error:
                if not self._source.is_down(error):
                    raise
            else:
                return

    def _run(self, command: str, *arguments: str) -> tuple[str, int]:
        server = cast("SysbenchServer", self._source.server)
        sizes = (f"--tables={len(TABLES)}", f"--table-size={self._rows}", "--auto_inc=off")
        process = server.sysbench(
            self._source.database, "oltp_read_write", *sizes, *arguments, command
        )
        said, _ = process.communicate()
        return said, process.returncode
