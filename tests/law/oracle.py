"""The source table in plain Python: what its statements leave behind, and the events they send.

The truth is the table itself, which always has every value; only the *events* leave values out, as
PostgreSQL's do for an unchanged TOAST column (REPLICA IDENTITY DEFAULT). So the oracle shares no
idea of filling, ordering or masks with the code that it judges. A statement that finds no row, or
a key that is taken, does nothing, as ``UPDATE ... WHERE`` does: every subset of a history is a
history, which makes shrinking simple.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

VALUES = ("n", "body", "blob", "tags")
TOASTED = ("body", "blob", "tags")


class Absent(Enum):
    """What an event has for a value that it leaves out."""

    UNAVAILABLE = "unavailable"


Row = dict[str, object]


@dataclass(frozen=True)
class Insert:
    """A new row; ``snapshot`` reads it in the initial snapshot instead."""

    id: int
    values: Mapping[str, object]
    snapshot: bool = False


@dataclass(frozen=True)
class Update:
    """Values that change. Unchanged TOAST values are left out unless they are ``sent``."""

    id: int
    changes: Mapping[str, object]
    sent: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Move:
    """A change of the primary key: delete(old) and create(new) at one place of the log."""

    id: int
    to: int
    changes: Mapping[str, object] = field(default_factory=dict)
    sent: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Shift:
    """One statement that changes several keys, checked when all are changed: rows may pass."""

    moves: tuple[Move, ...]


@dataclass(frozen=True)
class Delete:
    """A row goes."""

    id: int


@dataclass(frozen=True)
class Truncate:
    """All rows go."""


Statement = Insert | Update | Move | Shift | Delete | Truncate


@dataclass(frozen=True)
class Event:
    """One change event; ``after`` may hold ``Absent.UNAVAILABLE``."""

    op: str
    id: int | None = None
    after: Row | None = None
    moved_from: int | None = None
    snapshot: bool = False


class SourceTable:
    """The rows of one table by key."""

    def __init__(self) -> None:
        """Start empty."""
        self.rows: dict[int, Row] = {}

    def execute(self, statement: Statement) -> list[Event]:
        """Change the rows and return the events that Debezium sends for it."""
        rows = self.rows
        match statement:
            case Insert(id=key) if key not in rows:
                rows[key] = {name: statement.values.get(name) for name in VALUES}
                op = "r" if statement.snapshot else "c"
                return [Event(op, key, dict(rows[key]), snapshot=statement.snapshot)]
            case Update(id=key) if key in rows:
                return [Event("u", key, self._changed(key, statement))]
            case Move(id=key, to=new) if key in rows and new not in rows:
                after = self._changed(key, statement)
                rows[new] = rows.pop(key)
                return [Event("d", key), Event("c", new, after, moved_from=key)]
            case Shift(moves=moves):
                return self._shifted([move for move in moves if move.id in rows])
            case Delete(id=key) if key in rows:
                del rows[key]
                return [Event("d", key)]
            case Truncate():
                rows.clear()
                return [Event("t")]
            case _:
                return []

    def _shifted(self, moves: Sequence[Move]) -> list[Event]:
        rows = self.rows
        taken = set(rows) - {move.id for move in moves}
        if len({move.to for move in moves} - taken) < len(moves):
            return []
        sent = []
        for move in moves:
            sent += [
                Event("d", move.id),
                Event("c", move.to, self._changed(move.id, move), move.id),
            ]
        rows.update({move.to: rows.pop(move.id) for move in moves})
        return sent

    def _changed(self, key: int, statement: Update | Move) -> Row:
        old = self.rows[key]
        new = self.rows[key] = {**old, **statement.changes}
        after = dict(new)
        for name in TOASTED:
            unchanged = name not in statement.changes and old[name] is not None
            if unchanged and name not in statement.sent:
                after[name] = Absent.UNAVAILABLE
        return after
