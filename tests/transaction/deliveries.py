"""Random histories of PostgreSQL transactions, and what of their events has been delivered.

A history is a list of transactions in commit order. A connector sends it in *runs*: a run may end
by a kill inside a transaction; the next one goes on from a row that it had sent, or goes back some
transactions and sends them again whole. Debezium before 3.7.0 repeats BEGIN then and counts only
its own rows in END. What one run sends to a partition becomes visible in its order; between the
partitions of a run no order is promised; runs follow one another. A reader sees a prefix of each
partition (the watermarks) and may read less than that.

The oracle is plain Python over the list of transactions; it never looks at positions or counts.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from lakeingest.position import after
from tests.envelope.records import Record, postgresql_event

CASE = 1_000
LSN_SPAN = 1_000_000
TABLES = ("a", "b")
MESSAGE = "io.debezium.connector.postgresql.Monitor$LogicalDecodingMessageId@50a5e486"

RowId = tuple[int, int]
"""Transaction of the history, row of the transaction."""


@dataclass(frozen=True)
class Transaction:
    """One transaction: the table of each row, and rows of tables that are not read."""

    tables: tuple[str, ...]
    hidden: int
    messages: int


@dataclass(frozen=True)
class Sent:
    """One record that a run sent, to a data partition or (None) to the transaction topic."""

    run: int
    where: tuple[str, int] | None
    row: RowId | None
    status: str
    transaction: int
    counts: tuple[tuple[str, int], ...] = ()
    nth: int = 0


@dataclass
class Delivery:
    """What is there of a history: visible records per partition, and how far they were read."""

    case: int
    history: list[Transaction]
    visible: dict[tuple[str, int] | None, list[Sent]] = field(default_factory=dict)
    read: dict[tuple[str, int] | None, int] = field(default_factory=dict)

    def rows_read(self) -> set[RowId]:
        """Return the distinct rows that were read."""
        return {
            sent.row
            for where, sent_there in self.visible.items()
            for sent in sent_there[: self.read[where]]
            if sent.row is not None
        }

    def whole(self, transaction: int) -> bool:
        """The oracle: is every row of this transaction among what was read?"""
        rows = {(transaction, n) for n in range(len(self.history[transaction].tables))}
        return rows <= self.rows_read()

    def passed(self) -> str | None:
        """Return the lowest of the highest positions of the partitions that were cut short."""
        lowest = []
        for where, sent in self.visible.items():
            if where is not None and self.read[where] < len(sent):
                places = (self.position(s.row) for s in sent[: self.read[where]] if s.row)
                lowest.append(max(places, default=""))
        return min(lowest, default=None)

    def position(self, row: RowId) -> str:
        before, lsn = self.place(row)
        return after(0, before + 1, lsn)

    def place(self, row: RowId) -> tuple[int, int]:
        """Return the commit before the row's transaction and the row's own (interleaved) LSN."""
        transaction, n = row
        before = self.commit(transaction - 1)
        return before, before - 1_500 * (transaction % 2) + 10 * n + 1

    def commit(self, transaction: int) -> int:
        return self.case * LSN_SPAN + 10_000 + 2_000 * (transaction + 1)

    def xid(self, transaction: int) -> int:
        return self.case * CASE + transaction

    def data(self, *, named: bool = True) -> Iterator[Record]:
        """Yield the data records that were read; ``named``: they say which run sent them."""
        for where, sent_there in self.visible.items():
            if where is None:
                continue
            for offset, sent in enumerate(sent_there[: self.read[where]]):
                assert sent.row is not None
                before, lsn = self.place(sent.row)
                event = postgresql_event(
                    xid=self.xid(sent.transaction),
                    before=before,
                    lsn=lsn,
                    table=where[0],
                    nth=sent.nth,
                )
                headers = {"__debezium.context.runId": f"run-{sent.run}"} if named else {}
                yield Record(where[0], event, {"id": sent.row[1]}, where[1], offset, headers)

    def metadata(self) -> Iterator[Record]:
        """Yield the records of the transaction topic that were read; the case is the partition."""
        for offset, sent in enumerate(self.visible[None][: self.read[None]]):
            number = self.commit(sent.transaction)
            if sent.status == "BEGIN":
                number -= 1_999
            value = {"status": sent.status, "id": f"{self.xid(sent.transaction)}:{number}"}
            if sent.status == "END":
                counts = [{"data_collection": n, "event_count": c} for n, c in sent.counts]
                value |= {"event_count": sum(c for _, c in sent.counts), "data_collections": counts}  # type: ignore[dict-item]
            yield Record("tx", value, None, self.case, self.case * CASE + offset)


def _history(draw: random.Random) -> list[Transaction]:
    return [
        Transaction(
            tuple(draw.choice(TABLES) for _ in range(draw.choice((0, 1, 2, 3, 5, 8)))),
            draw.choice((0, 0, 2)),
            draw.choice((0, 0, 1)),
        )
        for _ in range(draw.randint(2, 6))
    ]


def _run_rows(
    history: list[Transaction], run: int, transaction: int, rows: range, *, ended: bool
) -> Iterator[Sent]:
    entry = history[transaction]
    yield Sent(run, None, None, "BEGIN", transaction)
    for n in rows:
        where = (entry.tables[n], n % 2)
        yield Sent(run, where, (transaction, n), "", transaction, nth=n - rows.start + 1)
    if ended:
        counts = Counter(f"public.{entry.tables[n]}" for n in rows)
        counts.update({"public.hidden": entry.hidden, MESSAGE: entry.messages})
        some = tuple((name, count) for name, count in counts.items() if count)
        yield Sent(run, None, None, "END", transaction, some)


def _attempts(draw: random.Random, size: int) -> list[range]:
    """Return which rows of a transaction each run sends; the last one sends END.

    Offsets are committed in order, so no run begins before the one before it.
    """
    while True:
        begin, killed = 0, []
        for _ in range(draw.choice((0, 0, 1, 2)) if size > 1 else 0):
            stop = draw.randint(begin, size)
            killed.append(range(begin, stop))
            begin = draw.choice((begin, draw.randint(begin, stop)))
        # Runs of equal size have a test of their own: their counts cannot tell them apart.
        if size - begin not in {len(rows) for rows in killed}:
            return [*killed, range(begin, size)]


def _sent(draw: random.Random, history: list[Transaction]) -> Iterator[Sent]:
    run = 0
    for transaction, entry in enumerate(history):
        *killed, last = _attempts(draw, len(entry.tables))
        for rows, following in pairwise([*killed, last]):
            yield from _run_rows(history, run, transaction, rows, ended=False)
            run += 1
            if following.start == 0 and draw.random() < 0.5:
                for again in range(draw.randint(0, transaction), transaction):
                    whole = range(len(history[again].tables))
                    yield from _run_rows(history, run, again, whole, ended=True)
        yield from _run_rows(history, run, transaction, last, ended=True)


def deliveries(seed: int, count: int) -> list[Delivery]:
    """Return ``count`` deliveries; every fourth one is complete."""
    draw = random.Random(seed)
    made: list[Delivery] = []
    while len(made) < count:
        history = _history(draw)
        sent = list(_sent(draw, history))
        for _ in range(4):
            made.append(_delivered(draw, Delivery(len(made), history), sent))
    return made[:count]


def _delivered(draw: random.Random, made: Delivery, sent: list[Sent]) -> Delivery:
    everything = made.case % 4 == 0
    last = max(s.run for s in sent)
    run = last if everything else draw.randint(0, last)
    for where in [None, *((table, part) for table in TABLES for part in (0, 1))]:
        before = [s for s in sent if s.where == where and s.run < run]
        now = [s for s in sent if s.where == where and s.run == run]
        seen = before + (now if everything else now[: draw.randint(0, len(now))])
        if where is not None:
            # A producer's retry may write a record twice.
            seen = [s for s in seen for _ in range(draw.choice((1, 1, 1, 2)))]
        made.visible[where] = seen
        cut = where is not None and not everything and draw.random() < 0.4
        made.read[where] = draw.randint(0, len(seen)) if cut else len(seen)
    return made
