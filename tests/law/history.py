"""Random histories and random ways to deliver them.

A *case* is one history with its delivery: which events arrive in which round. All cases of a
property share one table, told apart by the first key column, so hundreds cost a few Spark jobs.
Positions are (cut, statement, pair of events), so different cases have equal positions for
different keys, as the rows of one COPY have. Every case is made from ``Random(seed)`` of its own
and can be made again.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from lakeingest.decode.encodings import Encodings
from lakeingest.frame_schemas import Kind
from lakeingest.position import after
from tests.law.oracle import (
    TOASTED,
    Absent,
    Delete,
    Event,
    Insert,
    Move,
    Row,
    Shift,
    SourceTable,
    Statement,
    Truncate,
    Update,
)

COLLECTION = "public.docs"
_SPARE = 9
"""A key that only swaps use."""

Item = tuple[int, int]
"""An event of a history: number of its statement, and which of that statement's events."""


@dataclass(frozen=True)
class Case:
    """A history and its delivery.

    Attributes:
        seed: What made it.
        statements: In the order of the source; null where shrinking took one out.
        cuts: Per statement the batch that the source order gives it; never falls.
        rounds: Per round the items that arrive, in order of arrival.
        in_order: Whether round ``n`` completes cut ``n``, so that every round can be checked.
    """

    seed: int
    statements: tuple[Statement | None, ...]
    cuts: tuple[int, ...]
    rounds: tuple[tuple[Item, ...], ...]
    in_order: bool

    def events(self) -> dict[Item, Event]:
        """Return what the source sends."""
        table = SourceTable()
        sent = {}
        for number, statement in enumerate(self.statements):
            if statement is not None:
                for part, event in enumerate(table.execute(statement)):
                    sent[number, part] = event
        return sent

    def truth(self, number: int) -> dict[int, Row] | None:
        """Return the rows that must be live after round ``number``; null: any may be."""
        last = number >= len(self.rounds) - 1
        if not self.in_order and not last:
            return None
        table = SourceTable()
        for statement, cut in zip(self.statements, self.cuts, strict=True):
            if statement is not None and (last or cut <= number):
                table.execute(statement)
        return table.rows

    def without(self, numbers: frozenset[int]) -> Case:
        """Return the case with these statements taken out."""
        statements = tuple(None if n in numbers else s for n, s in enumerate(self.statements))
        return replace(self, statements=statements)

    def size(self) -> int:
        """Return the number of statements that are left."""
        return sum(statement is not None for statement in self.statements)

    def position(self, item: Item, *, snapshot: bool = False) -> str:
        """Return the place of an event in the source's log; halves of a key change share it."""
        number, part = item
        text = after(0, self.cuts[number] + 1, number + 1, part // 2)
        return f"{text[:4]}0{text[5:]}" if snapshot else text

    def changes(self, history: int, number: int) -> Iterator[Change]:
        """Return round ``number`` as rows of ``CHANGE`` (without topic and offset)."""
        sent = self.events()
        for item in self.rounds[number]:
            event = sent.get(item)
            if event is not None:
                position = self.position(item, snapshot=event.snapshot)
                cut = None if event.snapshot else str(self.cuts[item[0]])
                yield from change(history, event, position, cut)

    def described(self) -> str:
        """Return the case as text for a failure's message."""
        lines = [f"seed {self.seed}"]
        for number, statement in enumerate(self.statements):
            if statement is not None:
                lines.append(f"  {number} (cut {self.cuts[number]}): {statement}")
        sent = self.events()
        for number, items in enumerate(self.rounds):
            lines.append(f"  round {number}: {[item for item in items if item in sent]}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Change:
    """The fields of ``CHANGE`` that differ from event to event."""

    kind: str
    op: str | None
    position: str | None
    key: bytes | None
    value: bytes | None
    moved_from: str | None = None
    may_be_masked: bool = False
    transaction_key: str | None = None


def change(
    history: int, event: Event, position: str, transaction: str | None = None
) -> Iterator[Change]:
    """Return an event as ``envelope/change.py`` would, and the null record after a delete."""
    key = None if event.id is None else _key(history, event.id)
    row = None if event.after is None else {"h": history, "id": event.id, **_wire(event.after)}
    before = {"h": history, "id": event.id, "n": 0} if event.op == "d" else None
    source = {"connector": "postgresql", "schema": "public", "table": "docs", "ts_ms": 1}
    value = json.dumps({"before": before, "after": row, "source": source, "op": event.op})
    kind = {"t": Kind.TRUNCATE, "r": Kind.SNAPSHOT}.get(event.op, Kind.ROW)
    masked = event.op in ("c", "u") and any(mark in value for mark in Encodings().json_marks())
    moved_from = None if event.moved_from is None else _key(history, event.moved_from)
    octets = None if key is None else key.encode()
    yield Change(kind, event.op, position, octets, value.encode(), moved_from, masked, transaction)
    if event.op == "d":
        yield Change(Kind.NULL_RECORD, None, None, octets, None)


def _key(history: int, number: int) -> str:
    return json.dumps({"h": history, "id": number})


def _wire(row: Mapping[str, object]) -> dict[str, object]:
    placeholder = Encodings().placeholder
    wire: dict[str, object] = {}
    for name, value in row.items():
        sent = placeholder.encode() if name == "blob" else placeholder
        if value is Absent.UNAVAILABLE:
            value = [sent] if name == "tags" else sent
        wire[name] = base64.b64encode(value).decode() if isinstance(value, bytes) else value
    return wire


def random_history(
    rng: Random,
    length: int,
    *,
    masked_moves: bool,
    truncate_at: int | None = None,
    shifts: bool = False,
) -> tuple[Statement, ...]:
    """Return ``length`` statements on three keys; the values of each are its own.

    Args:
        rng: Chance.
        length: Number of statements.
        masked_moves: Whether changed keys leave values out.
        truncate_at: Which of them is a truncate, if any.
        shifts: Whether rows may pass one another within a statement.
    """
    statements: list[Statement] = []
    while len(statements) < length:
        number = len(statements)
        if number == truncate_at:
            statements.append(Truncate())
            continue
        if shifts and rng.random() < _SHIFTS:
            statements.append(_shift(rng))
            continue
        one, two = rng.sample((1, 2, 3), 2)
        chosen = rng.random()
        sent = TOASTED if not masked_moves else rng.sample(TOASTED, rng.choice((0, 0, 1)))
        if chosen < 0.3:
            # The initial snapshot is before everything that is streamed.
            first = all(isinstance(one, Insert) and one.snapshot for one in statements)
            early = first and rng.random() < 0.5
            statements.append(Insert(one, _values(rng, number, ("n", *TOASTED)), early))
        elif chosen < 0.65:
            names = rng.sample(("n", *TOASTED), rng.choice((0, 1, 1, 2)))
            some = rng.sample(TOASTED, rng.choice((0, 0, 1)))
            statements.append(Update(one, _values(rng, number, names), frozenset(some)))
        elif chosen < 0.8:
            statements.append(Delete(one))
        elif chosen < 0.92 or number + 3 > length or _crosses(truncate_at, number):
            names = rng.sample(("n", *TOASTED), rng.choice((0, 0, 1)))
            statements.append(Move(one, two, _values(rng, number, names), frozenset(sent)))
        else:
            steps = ((one, _SPARE), (two, one), (_SPARE, two))
            statements += [Move(old, new, {}, frozenset(sent)) for old, new in steps]
    return tuple(statements)


def _shift(rng: Random) -> Shift:
    """Return a statement like ``SET id = id + 1``, a swap, or any other new order of the keys."""
    keys = rng.sample((1, 2, 3, _SPARE), rng.choice((2, 3, 4)))
    news = keys[1:] + (keys[:1] if rng.random() < 0.5 else [])
    moves = [
        Move(old, new, {}, frozenset(rng.sample(TOASTED, rng.choice((0, 0, 1, 3)))))
        for old, new in zip(keys, news, strict=False)
    ]
    rng.shuffle(moves)
    return Shift(tuple(moves))


_SHIFTS = 0.25
_MOST_EVENTS = 8
"""Of a statement that changes several keys."""


def _crosses(truncate_at: int | None, number: int) -> bool:
    return truncate_at is not None and number < truncate_at < number + 3


def _values(rng: Random, number: int, names: Sequence[str]) -> dict[str, object]:
    made: dict[str, object] = {
        "n": number,
        "body": f"body {number}",
        "blob": f"blob {number}".encode(),
        "tags": rng.choice(([], [f"tag {number}"], [f"tag {number}", "z"])),
    }
    return {name: None if rng.random() < 0.15 else made[name] for name in names}


def in_order(seed: int, rounds: int, *, truncate: bool = False, shifts: bool = False) -> Case:
    """Return a case whose rounds follow the source, with repetitions of all kinds in between.

    Each round may also hold a replay of the cuts just before it (a crash, then batches cut
    elsewhere) or single events of long ago; one more round holds nothing but repetitions.
    """
    rng = Random(seed)
    length = rng.randint(4, 14)
    truncate_at = 6 if truncate else None
    statements = random_history(
        rng,
        max(length, 9) if truncate else length,
        masked_moves=True,
        truncate_at=truncate_at,
        shifts=shifts,
    )
    cuts = _cuts(rng, len(statements), rounds, truncate_at)
    items = _items(statements)
    delivered: list[tuple[Item, ...]] = []
    for number in range(rounds):
        fresh = [item for item in items if cuts[item[0]] == number]
        arriving = fresh + [item for item in fresh if rng.random() < 0.15]
        past = [item for item in items if cuts[item[0]] < number]
        if rng.random() < 0.3:
            first = rng.randrange(number + 1)
            arriving += [item for item in past if cuts[item[0]] >= first]
        arriving += [item for item in past if rng.random() < 0.1]
        rng.shuffle(arriving)
        delivered.append(tuple(arriving))
    again = [item for item in items if rng.random() < 0.4]
    rng.shuffle(again)
    return Case(seed, statements, cuts, (*delivered, tuple(again)), in_order=True)


def any_order(seed: int, rounds: int, *, truncate: bool = False) -> Case:
    """Return a case whose events arrive in any round, some of them twice."""
    rng = Random(seed)
    length = rng.randint(4, 12)
    truncate_at = 5 if truncate else None
    statements = random_history(
        rng, max(length, 8) if truncate else length, masked_moves=False, truncate_at=truncate_at
    )
    cuts = _cuts(rng, len(statements), rounds, truncate_at)
    delivered: list[list[Item]] = [[] for _ in range(rounds)]
    for item in _items(statements):
        for _ in range(rng.choice((1, 1, 2))):
            delivered[rng.randrange(rounds)].append(item)
    for items in delivered:
        rng.shuffle(items)
    return Case(seed, statements, cuts, tuple(map(tuple, delivered)), in_order=False)


def _items(statements: Sequence[Statement]) -> list[Item]:
    return [
        (number, part)
        for number, statement in enumerate(statements)
        for part in range(_MOST_EVENTS if isinstance(statement, Shift) else 2)
    ]


def _cuts(rng: Random, length: int, rounds: int, truncate_at: int | None) -> tuple[int, ...]:
    if truncate_at is None:
        return tuple(sorted(rng.randrange(rounds) for _ in range(length)))
    # A truncate concerns the whole table, so it stands at the same place in every case.
    middle = rounds // 2
    before = sorted(rng.randrange(middle + 1) for _ in range(truncate_at))
    later = sorted(rng.randrange(middle, rounds) for _ in range(length - truncate_at - 1))
    return (*before, middle, *later)
