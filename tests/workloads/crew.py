"""Clients that work a database at the same time, outlive its death, and count what came of it.

A commit whose answer was lost is the one outcome that a client cannot know. It is counted as
unknown, and asked about on the next connection: every workload keeps a witness row per client and
transaction, so ``was_committed`` can tell. Asking is safe because the server was dead or the
session was ended by then: no commit of it can still be under way. (Where only the network broke it
might be; the witness's key then makes the next transaction a conflict, which asks again.)
"""

from __future__ import annotations

import random
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.workloads.counts import Counts
from tests.workloads.session import ConflictError, NothingToDoError, Session, Trouble
from tests.workloads.source import Source

ATTEMPTS = 6
"""How often a transaction is tried before its turn is given up."""

_KNOCK_SECONDS = 0.1


@dataclass
class Client:
    """One of the clients.

    Attributes:
        number: From 0.
        rng: Its own source of chance.
        next: Number of its next witnessed transaction.
    """

    number: int
    rng: random.Random
    next: int = 1


@dataclass
class Transaction:
    """One attempt at one transaction; what it did counts only once it is committed.

    Attributes:
        session: Where it happens.
        client: Who does it.
        did: Rows by operation, and special kinds of change.
        step: Its kind.
        rolls_back: Set where a rollback is the point.
        witnessed: Whether the client's witness will show it.
    """

    session: Session
    client: Client
    did: Counter[str] = field(default_factory=Counter)
    step: str = ""
    rolls_back: bool = False
    witnessed: bool = False

    @property
    def rng(self) -> random.Random:
        """The client's source of chance."""
        return self.client.rng

    def insert(self, statement: str, *values: Any) -> int:
        """Run an INSERT and count its rows."""
        return self._count("insert", statement, values)

    def update(self, statement: str, *values: Any) -> int:
        """Run an UPDATE and count its rows."""
        return self._count("update", statement, values)

    def update_one(self, statement: str, *values: Any) -> None:
        """Run an UPDATE of one row that must be there.

        Raises:
            ConflictError: It is not there any more.
        """
        if self.update(statement, *values) != 1:
            raise ConflictError(statement)

    def delete(self, statement: str, *values: Any) -> int:
        """Run a DELETE and count its rows."""
        return self._count("delete", statement, values)

    def note(self, kind: str, times: int = 1) -> None:
        """Count a special kind of change."""
        self.did[kind] += times

    def _count(self, kind: str, statement: str, values: tuple[Any, ...]) -> int:
        rows = self.session.execute(statement, *values)
        self.did[kind] += rows
        return rows


class Job(ABC):
    """What the clients do."""

    @abstractmethod
    def turn(self, number: int) -> Any:
        """Return what transaction ``number`` of the whole crew, from 1, shall be."""

    @abstractmethod
    def perform(self, transaction: Transaction, turn: Any) -> None:
        """Do everything but the commit."""

    @abstractmethod
    def settle(self, session: Session, client: Client) -> None:
        """Read ``client.next`` from the witness."""

    @abstractmethod
    def committed(self, transaction: Transaction) -> None:
        """Take note that ``transaction`` is there to stay."""


@dataclass(frozen=True)
class Pace:
    """How much and how fast.

    Attributes:
        clients: Threads, each with a connection.
        per_second: Most transactions a second of all clients together; None for no limit.
        transactions: Number after which the clients stop by themselves; None for no end.
        hold_at: Transaction that comes again and again until ``release``, uncounted: whatever is
            planned behind it waits, and the database is busy; None for no hold.
    """

    clients: int = 4
    per_second: float | None = None
    transactions: int | None = None
    hold_at: int | None = None


class Crew:
    """The clients of a workload; ``start``, then ``stop`` or ``finish``."""

    def __init__(self, source: Source, job: Job, seed: int, pace: Pace) -> None:
        self.job = job
        self._source = source
        self._pace = pace
        self._counts = Counts()
        self._counting = threading.Lock()
        self._over = threading.Event()
        self._released = threading.Event()
        self._turns = 0
        self._due = 0.0
        self._began = 0.0
        self._broken: Exception | None = None
        self._threads = [
            threading.Thread(
                target=self._live,
                args=(Client(number, random.Random(f"{seed}/{number}")),),
                name=f"client-{number}",
                daemon=True,
            )
            for number in range(pace.clients)
        ]

    def start(self) -> None:
        """Let the clients begin."""
        self._began = self._due = time.monotonic()
        for thread in self._threads:
            thread.start()

    def release(self) -> None:
        """Go on behind ``Pace.hold_at``."""
        self._released.set()

    def stop(self) -> Counts:
        """Let each client end its transaction, and return the account.

        Raises:
            Exception: What a client met and was not prepared for.
        """
        self._over.set()
        return self.finish()

    def finish(self, seconds: float | None = None) -> Counts:
        """Wait until the clients have done their number of transactions, and return the account.

        Raises:
            TimeoutError: They have not after ``seconds``; they are told to stop.
            Exception: What a client met and was not prepared for.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        for thread in self._threads:
            thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                self._over.set()
                message = f"{thread.name} is not done after {seconds} s"
                raise TimeoutError(message)
        self._counts.seconds = self._counts.seconds or time.monotonic() - self._began
        if self._broken is not None:
            raise self._broken
        return self._counts

    @property
    def turns(self) -> int:
        """How many transactions were begun."""
        return self._turns

    @property
    def counts(self) -> Counts:
        """The account so far; it goes on changing."""
        return self._counts

    def _live(self, client: Client) -> None:
        session: Session | None = None
        try:
            while (number := self._next()) is not None:
                turn = self.job.turn(number)
                for _ in range(ATTEMPTS):
                    session = session or self._connect(client)
                    if session is None:
                        return
                    session, again = self._attempt(session, client, turn)
                    if not again:
                        break
                else:
                    self._tell(steps={"given up": 1})
        except Exception as error:  # noqa: BLE001 - told to whoever waits for the crew
            self._broken = error
            self._over.set()
        finally:
            if session is not None:
                session.close()

    def _next(self) -> int | None:
        """Return the number of the next transaction when it is due; None when it is over."""
        with self._counting:
            if self._pace.transactions is not None and self._turns >= self._pace.transactions:
                return None
            held = self._turns == self._pace.hold_at and not self._released.is_set()
            self._turns += 0 if held else 1
            number = self._turns
            due = self._due
            if self._pace.per_second is not None:
                # What was missed while the database was down is not made up for in a burst.
                due = max(self._due, time.monotonic() - 1.0)
                self._due = due + 1.0 / self._pace.per_second
        return None if self._over.wait(max(0.0, due - time.monotonic())) else number

    def _connect(self, client: Client) -> Session | None:
        """Return a new session as soon as the database has one to give; None when it is over."""
        while True:
            try:
                session = self._source.session()
            except Exception as error:
                if not self._source.is_down(error):
                    raise
            else:
                try:
                    self.job.settle(session, client)
                    session.commit()
                    return session
                except Exception as error:
                    if session.judge(error) is Trouble.BUG:
                        raise
            if self._over.wait(_KNOCK_SECONDS):
                return None

    def _attempt(self, session: Session, client: Client, turn: Any) -> tuple[Session | None, bool]:
        """Try ``turn`` once; return the session, None if it is gone, and whether to try again."""
        transaction = Transaction(session, client)
        sent = False
        try:
            self.job.perform(transaction, turn)
            if transaction.rolls_back:
                session.rollback()
            else:
                sent = True
                session.commit()
        except NothingToDoError:
            session.rollback()
            self._tell(steps={"nothing to do": 1})
            return session, False
        except Exception as error:
            trouble = session.judge(error)
            if trouble is Trouble.BUG:
                raise
            if trouble is Trouble.CONFLICT:
                self._tell(conflicts=1)
                return self._again(session, client), True
            return self._after_a_loss(transaction, sent=sent)
        self._account(transaction)
        return session, False

    def _again(self, session: Session, client: Client) -> Session | None:
        """Make ``session`` ready for another attempt; None if it broke."""
        try:
            session.rollback()
            # The conflict may be with a commit of our own whose answer was lost.
            self.job.settle(session, client)
            session.commit()
        except Exception as error:
            if session.judge(error) is not Trouble.LOST:
                raise
            self._tell(reconnects=1)
            return None
        return session

    def _after_a_loss(self, transaction: Transaction, *, sent: bool) -> tuple[Session | None, bool]:
        """Count a broken connection, and find out what became of a commit under way."""
        if not sent:
            self._tell(lost=1, reconnects=1)
            return None, True
        self._tell(unknown=1, reconnects=1)
        client, number = transaction.client, transaction.client.next
        session = self._connect(client)
        if session is not None and transaction.witnessed:
            if client.next > number:
                self._tell(found=1, steps={transaction.step: 1}, changes=transaction.did)
                self.job.committed(transaction)
            else:
                self._tell(gone=1)
        return session, False

    def _account(self, transaction: Transaction) -> None:
        if transaction.rolls_back:
            self._tell(rolled_back=1, steps={transaction.step: 1})
            return
        if transaction.witnessed:
            transaction.client.next += 1
        self._tell(committed=1, steps={transaction.step: 1}, changes=transaction.did)
        self.job.committed(transaction)

    def _tell(
        self,
        steps: dict[str, int] | None = None,
        changes: Counter[str] | None = None,
        **more: int,
    ) -> None:
        with self._counting:
            self._counts.steps.update(steps or {})
            self._counts.changes.update(changes or {})
            for name, times in more.items():
                setattr(self._counts, name, getattr(self._counts, name) + times)
