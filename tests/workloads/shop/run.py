"""The shop as it is run: which step comes when, and the clients that take them.

Steps are dealt like cards from a shuffled deck in which every kind is at least once, so that even a
short run has every kind; drawing each by chance would miss the rare ones in just the short runs
that tests make. Who gets which card depends on the clients' speed: a seed repeats the deck and the
values, not the interleaving, which is the database's.

What is rare by nature (giants, the ALTER, signals) comes by a schedule and not from the deck.
"""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass
from functools import partial

from tests.workloads.counts import Counts
from tests.workloads.crew import Client, Pace, Transaction
from tests.workloads.session import Session
from tests.workloads.shop import documents, orders, stock
from tests.workloads.shop.invariants import violations
from tests.workloads.shop.schema import CAPTURED, create_tables, fill_tables
from tests.workloads.shop.step import Floor, Step
from tests.workloads.source import Source, within
from tests.workloads.workload import CrewWorkload

DECK = (
    Step(orders.new_order, 40),
    Step(orders.change_order, 15),
    Step(orders.cancel_order, 6),
    Step(orders.order_key, 2),
    Step(orders.customer, 7),
    Step(orders.null_edges, 3),
    Step(orders.customer_key, 3),
    Step(orders.customer_swap, 2),
    Step(orders.long_order, 1),
    Step(orders.savepoint, 2),
    Step(orders.rollback, 2, witnessed=False, rolls_back=True),
    Step(documents.doc_new, 2),
    Step(documents.doc_touch, 6),
    Step(documents.doc_body, 2),
    Step(documents.doc_key, 2),
    Step(documents.doc_swap, 1),
    Step(documents.doc_fresh, 2),
    Step(documents.doc_fresh_key, 1),
    Step(documents.doc_gone, 2),
    Step(documents.doc_again, 1),
    Step(documents.doc_reborn, 1),
    Step(stock.cart, 5),
    Step(stock.stock, 4),
    Step(stock.cart_truncate, 1),
    Step(stock.stock_truncate, 1),
    Step(stock.both_truncate, 1),
    Step(stock.ephemeral, 2),
    Step(stock.ephemeral_again, 2),
    Step(stock.scratch_only, 2, witnessed=False),
    Step(stock.scratch_too, 1),
    Step(stock.empty, 1, witnessed=False),
    Step(stock.read_only, 1, witnessed=False),
    Step(stock.sample, 8),
)

TRUNCATES = frozenset(step for step in DECK if "truncate" in step.name)
GIANTS = tuple(Step(run, 0) for run in (stock.giant_insert, stock.giant_update, stock.giant_delete))
ALTER = Step(orders.add_channel, 0)
SIGNAL_STEP = Step(stock.snapshot_signal, 0)


@dataclass(frozen=True)
class Schedule:
    """When what is rare comes, in transactions of the whole crew; None for never.

    Attributes:
        giant_every: A giant comes so often: insert, update and delete in turn.
        giant_rows: Rows of the inserted one; the others have half as many.
        alter_at: The transaction that adds a column to orders.
        signal_every: How often an incremental snapshot is asked for.
        truncate_from: The first transaction that may truncate. PostgreSQL's TRUNCATE is seen by
            older snapshots: a connector whose initial snapshot meets one reads an empty table that
            was not empty at the snapshot's position, and no consumer can know better.
    """

    giant_every: int | None = 500
    giant_rows: int = 20_000
    alter_at: int | None = None
    signal_every: int | None = None
    truncate_from: int = 1


class Shop(CrewWorkload):
    """The shop on one database: ``create``, ``start``, and ``stop`` or ``finish``.

    Args:
        source: The database, which must exist.
        seed: Repeats the choice of steps and values.
        pace: How many clients, how fast, how long.
        schedule: When giants, the ALTER and signals come.
        bulk: Rows in the table ``bulk`` before the run, to make an initial snapshot last.
    """

    def __init__(
        self,
        source: Source,
        seed: int = 1,
        pace: Pace = Pace(),  # noqa: B008 - frozen
        schedule: Schedule = Schedule(),  # noqa: B008 - frozen
        bulk: int = 0,
    ) -> None:
        super().__init__(source, seed, pace)
        self._seed = seed
        self._schedule = schedule
        self._bulk = bulk
        self._floor = Floor(source, schedule.giant_rows)
        self._dealer = random.Random(seed)
        self._cards: list[Step] = []
        self._dealing = threading.Lock()

    def create(self) -> None:
        """Create the tables and the rows that are there before the run."""
        within(self._source, partial(create_tables, self._source))
        within(self._source, self._fill)

    def start(self) -> None:
        """Let the clients begin, on what ``create`` or an earlier run left."""
        within(self._source, self._floor.read_ids)
        super().start()

    def stop(self) -> Counts:
        """Let the clients end their transactions, and return what was done."""
        self._floor.stopping.set()
        return super().stop()

    @property
    def captured(self) -> tuple[str, ...]:
        """Bare names of the tables that a connector is to capture."""
        return CAPTURED

    def violations(self) -> list[str]:
        """Return which invariants do not hold now; they hold at every commit."""
        return violations(self._source)

    def turn(self, number: int) -> Step:
        """Return the step for transaction ``number``."""
        plan = self._schedule
        if number == plan.alter_at:
            return ALTER
        if plan.giant_every and number % plan.giant_every == 0:
            return GIANTS[(number // plan.giant_every - 1) % len(GIANTS)]
        if plan.signal_every and number % plan.signal_every == 0:
            return SIGNAL_STEP
        with self._dealing:
            while (step := self._deal()) in TRUNCATES and number < plan.truncate_from:
                pass
            return step

    def _deal(self) -> Step:
        if not self._cards:
            self._cards = [step for step in DECK for _ in range(step.cards)]
            self._dealer.shuffle(self._cards)
        return self._cards.pop()

    def perform(self, transaction: Transaction, turn: Step) -> None:
        """Do a step, and leave the witness in the same transaction."""
        transaction.step = turn.name
        transaction.rolls_back = turn.rolls_back
        transaction.witnessed = turn.witnessed
        turn.run(transaction, self._floor)
        if turn.witnessed:
            client = transaction.client
            statement = "INSERT INTO txlog VALUES (%s, %s, %s)"
            transaction.insert(statement, client.number, client.next, turn.name)

    def settle(self, session: Session, client: Client) -> None:
        """Read from txlog how far the client is."""
        newest = "SELECT coalesce(max(seq), 0) FROM txlog WHERE client = %s"
        client.next = session.value(newest, client.number) + 1

    def committed(self, transaction: Transaction) -> None:
        """Take note of what later steps depend on."""
        if transaction.did["alter"]:
            self._floor.altered.set()

    def _fill(self, session: Session) -> None:
        fill_tables(self._source, session, self._seed, self._bulk)
