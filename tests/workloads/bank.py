"""pgbench's TPC-B with a witness: money moves, and every sum of it stays the same sum.

One transaction updates an account, a teller and a branch by the same amount, inserts it into the
history and counts itself in the witness of its client: four rows of five tables that must agree at
every commit, and a number per client without gaps. (The fifth, the witness, comes second to last,
so that the history's key can be taken from it.)

On PostgreSQL the clients are those of the real ``pgbench``, which goes as fast as a database goes.
It ends when the server dies; then it is started again as soon as there is one. MariaDB has no
pgbench: there a crew of Python clients does the same.
"""

from __future__ import annotations

import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol, cast

from tests.workloads.counts import Counts
from tests.workloads.crew import Client, Pace, Transaction
from tests.workloads.session import Session
from tests.workloads.source import Source, within
from tests.workloads.workload import CrewWorkload, Workload

CAPTURED = (
    "pgbench_accounts",
    "pgbench_branches",
    "pgbench_history_w",
    "pgbench_tellers",
    "witness",
)
"""What a connector is to capture; named as in the recorded run, whose keys the checkers know."""

BRANCHES, TELLERS = 4, 40

_TABLES = (
    "CREATE TABLE pgbench_branches (bid int PRIMARY KEY, bbalance int, filler varchar(88))",
    "CREATE TABLE pgbench_tellers (tid int PRIMARY KEY, bid int, tbalance int, filler varchar(84))",
    "CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, bid int, abalance int,"
    " filler varchar(84))",
    "CREATE TABLE pgbench_history_w (client int, n int, tid int, bid int, aid int, delta int,"
    " mtime {moment}, PRIMARY KEY (client, n))",
    "CREATE TABLE witness (client int PRIMARY KEY, n int)",
)
_SCRIPT = f"""\
\\set aid random(1, :accounts)
\\set bid random(1, {BRANCHES})
\\set tid random(1, {TELLERS})
\\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
UPDATE witness SET n = n + 1 WHERE client = :client_id RETURNING n \\gset
INSERT INTO pgbench_history_w VALUES
    (:client_id, :n, :tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
"""
_INVARIANTS = """
    SELECT (SELECT sum(abalance) FROM pgbench_accounts),
    (SELECT sum(bbalance) FROM pgbench_branches),
    (SELECT sum(tbalance) FROM pgbench_tellers),
    (SELECT coalesce(sum(delta), 0) FROM pgbench_history_w),
    (SELECT sum(n) FROM witness), (SELECT count(*) FROM pgbench_history_w)"""
_KNOCK_SECONDS = 0.2
_ROWS_AT_A_TIME = 500


class PgbenchServer(Protocol):
    """What is needed of the rig's PostgreSQL."""

    def pgbench(self, database: str, *arguments: str) -> subprocess.Popen[str]:
        """Start pgbench on a database."""


def bank(
    source: Source,
    seed: int = 1,
    pace: Pace = Pace(),  # noqa: B008 - frozen
    accounts: int = 1_000,
) -> Workload:
    """Return the bank on a database: pgbench where there is one, else a crew.

    Args:
        source: The database, which must exist.
        seed: Repeats the amounts and who moves them.
        pace: How many clients, how fast, how long.
        accounts: How many accounts there are.
    """
    kind = _PgbenchBank if source.family == "postgresql" else _CrewBank
    return kind(source, seed, pace, accounts)


class _CrewBank(CrewWorkload):
    """The bank with clients in Python."""

    def __init__(self, source: Source, seed: int, pace: Pace, accounts: int) -> None:
        super().__init__(source, seed, pace)
        self._clients = pace.clients
        self._accounts = accounts

    @property
    def captured(self) -> tuple[str, ...]:
        return CAPTURED

    def create(self) -> None:
        _create(self._source, self._accounts, self._clients)

    def violations(self) -> list[str]:
        return violations(self._source)

    def turn(self, number: int) -> None:
        """Every turn is the same."""

    def perform(self, transaction: Transaction, turn: Any) -> None:
        transaction.step, transaction.witnessed = "transfer", True
        rng, client = transaction.rng, transaction.client
        account = rng.randint(1, self._accounts)
        teller, branch = rng.randint(1, TELLERS), rng.randint(1, BRANCHES)
        delta = rng.randint(-5_000, 5_000)
        for table, balance, key, value in (
            ("pgbench_accounts", "abalance", "aid", account),
            ("pgbench_tellers", "tbalance", "tid", teller),
            ("pgbench_branches", "bbalance", "bid", branch),
        ):
            transaction.update_one(
                f"UPDATE {table} SET {balance} = {balance} + %s WHERE {key} = %s", delta, value
            )
        transaction.update_one("UPDATE witness SET n = n + 1 WHERE client = %s", client.number)
        transaction.insert(
            "INSERT INTO pgbench_history_w VALUES (%s, %s, %s, %s, %s, %s, CURRENT_TIMESTAMP)",
            *(client.number, client.next, teller, branch, account, delta),
        )

    def settle(self, session: Session, client: Client) -> None:
        newest = "SELECT n FROM witness WHERE client = %s"
        client.next = session.value(newest, client.number) + 1


class _PgbenchBank:
    """The bank with the clients of pgbench; what was committed is read from the witness."""

    def __init__(self, source: Source, seed: int, pace: Pace, accounts: int) -> None:
        self._source = source
        self._seed = seed
        self._pace = pace
        self._accounts = accounts
        self._over = threading.Event()
        self._counts = Counts()
        self._before = 0
        self._began = 0.0
        self._running: subprocess.Popen[str] | None = None
        self._starting = threading.Lock()
        self._broken: Exception | None = None
        self._keeper = threading.Thread(target=self._keep_running, name="pgbench", daemon=True)

    @property
    def captured(self) -> tuple[str, ...]:
        return CAPTURED

    @property
    def turns(self) -> int:
        """How many transactions are committed."""
        return self._committed()

    def create(self) -> None:
        _create(self._source, self._accounts, self._pace.clients)

    def start(self) -> None:
        self._began = time.monotonic()
        self._before = _witnessed(self._source)
        self._keeper.start()

    def release(self) -> None:
        """Nothing is held."""

    def stop(self) -> Counts:
        with self._starting:
            self._over.set()
            if self._running is not None:
                self._running.terminate()
        return self.finish()

    def finish(self, seconds: float | None = None) -> Counts:
        self._keeper.join(seconds)
        if self._keeper.is_alive():
            self.stop()
            message = f"pgbench is not done after {seconds} s"
            raise TimeoutError(message)
        if self._broken is not None:
            raise self._broken
        self._wait_for_backends()
        self._counts.seconds = time.monotonic() - self._began
        self._counts.committed = self._committed()
        self._counts.steps["transfer"] = self._counts.committed
        self._counts.changes.update(
            insert=self._counts.committed, update=4 * self._counts.committed
        )
        return self._counts

    def violations(self) -> list[str]:
        return violations(self._source)

    def _keep_running(self) -> None:
        try:
            with tempfile.TemporaryDirectory() as folder:
                script = Path(folder) / "bank.sql"
                script.write_text(_SCRIPT, encoding="utf-8")
                while not self._over.is_set() and self._run(script):
                    self._counts.reconnects += self._pace.clients
        except Exception as error:  # noqa: BLE001 - told to whoever waits for the bank
            self._broken = error

    def _run(self, script: Path) -> bool:
        """Run pgbench until it ends; return whether the server died under it."""
        arguments = [
            *("--no-vacuum", f"--file={script}", "--max-tries=100"),
            *(f"--client={self._pace.clients}", f"--define=accounts={self._accounts}"),
            # Another seed each time, or all would be done again.
            f"--random-seed={self._seed + self._counts.reconnects}",
        ]
        if self._pace.per_second:
            arguments.append(f"--rate={self._pace.per_second}")
        if self._pace.transactions:
            left = self._pace.transactions - self._patiently(self._committed, 0)
            if left <= 0:
                return False
            arguments.append(f"--transactions={-(-left // self._pace.clients)}")
        else:
            arguments.append("--time=86400")
        server = cast("PgbenchServer", self._source.server)
        with self._starting:
            if self._over.is_set():
                return False
            self._running = server.pgbench(self._source.database, *arguments)
        said, _ = self._running.communicate()
        if self._over.is_set() or self._running.returncode == 0:
            return False
        if self._patiently(lambda: _witnessed(self._source), None) is None:
            return False
        if "connection" not in said and "server" not in said:
            message = f"pgbench failed: {said[-2000:]}"
            raise RuntimeError(message)
        return True

    def _patiently(self, ask: Callable[[], Any], otherwise: Any) -> Any:
        """Return what the database answers as soon as there is one; ``otherwise`` when over."""
        while True:
            try:
                return ask()
            except Exception as error:
                if not self._source.is_down(error):
                    raise
            if self._over.wait(_KNOCK_SECONDS):
                return otherwise

    def _committed(self) -> int:
        return _witnessed(self._source) - self._before

    def _wait_for_backends(self) -> None:
        """Wait until the server has noticed that pgbench is gone."""
        busy = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench'"
        busy += " AND datname = current_database()"
        with closing(self._source.session()) as session:
            while session.value(busy):
                session.rollback()
                time.sleep(0.05)


def violations(source: Source) -> list[str]:
    """Return which of the bank's invariants do not hold now."""
    with closing(source.session()) as session:
        # One statement, which sees one state.
        found = session.row(_INVARIANTS)
        session.rollback()
    assert found is not None
    accounts, branches, tellers, history, witness, transactions = map(int, found)
    said = []
    if len({accounts, branches, tellers, history}) != 1:
        said.append(
            f"balances differ: {accounts=} {branches=} {tellers=}, and the {history=} says another"
        )
    if witness != transactions:
        said.append(f"the {witness=} counts other {transactions=}")
    return said


def _create(source: Source, accounts: int, clients: int) -> None:
    def create(session: Session) -> None:
        moment = source.pick(postgresql="timestamp", mariadb="datetime(6)")
        for table in _TABLES:
            session.execute(table.format(moment=moment))
        _fill(session, "pgbench_branches", [f"({i}, 0, NULL)" for i in _to(BRANCHES)])
        per_branch = TELLERS // BRANCHES
        tellers = [f"({i}, {1 + (i - 1) // per_branch}, 0, NULL)" for i in _to(TELLERS)]
        _fill(session, "pgbench_tellers", tellers)
        rows = [f"({i}, {1 + i % BRANCHES}, 0, '{' ' * 84}')" for i in _to(accounts)]
        _fill(session, "pgbench_accounts", rows)
        _fill(session, "witness", [f"({i}, 0)" for i in range(clients)])

    within(source, create)


def _fill(session: Session, table: str, rows: list[str]) -> None:
    for start in range(0, len(rows), _ROWS_AT_A_TIME):
        some = ", ".join(rows[start : start + _ROWS_AT_A_TIME])
        session.execute(f"INSERT INTO {table} VALUES {some}")


def _to(last: int) -> range:
    return range(1, last + 1)


def _witnessed(source: Source) -> int:
    with closing(source.session()) as session:
        found = int(session.value("SELECT sum(n) FROM witness"))
        session.rollback()
    return found
