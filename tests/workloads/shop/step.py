"""What a step of the shop is, and what all steps share.

Rows are found by asking the database and not by remembering: then nothing that a lost connection
left uncertain can mislead a client. Only keys are kept here: new ones are never given twice, except
by the steps whose point it is to take a deleted key again.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from tests.workloads.crew import Transaction
from tests.workloads.session import ConflictError, NothingToDoError, Row, Session
from tests.workloads.source import Source

Item = TypeVar("Item")

HOT = 24
"""Customers that half of all steps want: enough waiting and deadlocks, and not only these."""


@dataclass
class Floor:
    """What the steps share.

    Attributes:
        source: The database.
        giant_rows: Rows of the largest transaction.
        deleted: Keys of documents that were deleted, to be used again.
        altered: Set once ``orders.channel`` is there.
    """

    source: Source
    giant_rows: int
    deleted: deque[int] = field(default_factory=lambda: deque(maxlen=200))
    altered: threading.Event = field(default_factory=threading.Event)
    stopping: threading.Event = field(default_factory=threading.Event)
    _next_id: itertools.count[int] = field(default_factory=itertools.count)
    _newest: int = 0
    _next_bulk: int = 1
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def read_ids(self, session: Session) -> None:
        """Give new keys from above all that are there."""
        tables = ("orders", "customers", "documents", "carts", "stock_log", "scratch", "samples")
        found = [session.value(f"SELECT coalesce(max(id), 0) FROM {t}") for t in tables]
        self._newest = max(1_000, *found)
        self._next_id = itertools.count(self._newest + 1)
        self._next_bulk = session.value("SELECT coalesce(max(id), 0) FROM bulk") + 1
        if session.row(
            "SELECT 1 FROM information_schema.columns WHERE table_name = 'orders' AND"
            " column_name = 'channel' AND table_schema = %s",
            self.source.namespace,
        ):
            self.altered.set()

    def new_id(self) -> int:
        """Return a key that no row ever had."""
        with self._lock:
            self._newest = next(self._next_id)
            return self._newest

    def new_bulk(self, rows: int) -> int:
        """Return the first of ``rows`` new keys of bulk."""
        with self._lock:
            first = self._next_bulk
            self._next_bulk += rows
        return first

    def any_of(self, tx: Transaction, table: str, columns: str = "id") -> Row:
        """Return ``columns`` of some row of ``table``, locked.

        Raises:
            NothingToDoError: The table is empty.
        """
        found = tx.session.row(
            f"SELECT {columns} FROM {table} WHERE id >= %s ORDER BY id LIMIT 1 FOR UPDATE",
            self._about(tx.rng),
        ) or tx.session.row(f"SELECT {columns} FROM {table} ORDER BY id LIMIT 1 FOR UPDATE")
        if found is None:
            raise NothingToDoError(table)
        return found

    def two_of(self, tx: Transaction, table: str) -> tuple[int, int]:
        """Return two keys of ``table``, locked in any order, so that two clients may deadlock.

        Raises:
            ConflictError: Chance found the same one twice.
        """
        one, other = self.any_of(tx, table)[0], self.any_of(tx, table)[0]
        if one == other:
            raise ConflictError(table)
        return one, other

    def _about(self, rng: random.Random) -> int:
        return rng.randint(1, HOT if rng.random() < 0.5 else self._newest)


@dataclass(frozen=True)
class Step:
    """A kind of transaction.

    Attributes:
        run: Does it.
        cards: How many of it are in a deck; 0 for one that is only dealt by the schedule.
        witnessed: Whether it leaves a row in txlog.
        rolls_back: Whether it ends with a rollback.
    """

    run: Callable[[Transaction, Floor], None]
    cards: int
    witnessed: bool = True
    rolls_back: bool = False

    @property
    def name(self) -> str:
        """The kind, as txlog has it."""
        return self.run.__name__
