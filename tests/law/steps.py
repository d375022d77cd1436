"""Short histories by hand: what a statement sends, delivered when the test says so."""

from __future__ import annotations

from lakeingest.position import after
from tests.law.history import Change, change
from tests.law.oracle import SourceTable, Statement


class Steps:
    """A source whose statements are numbered from 1, in its order."""

    def __init__(self, *statements: Statement, history: int = 0) -> None:
        """Execute all statements at once; their events wait for ``sent``.

        Args:
            *statements: Each is a transaction of its own.
            history: Tells the rows apart where several of them share a table.
        """
        self.source = SourceTable()
        self._history = history
        self._events = [self.source.execute(statement) for statement in statements]

    def sent(self, *numbers: int) -> list[Change]:
        """Return the events of these statements, in this order of arrival."""
        return [
            item
            for number in numbers
            for part, event in enumerate(self._events[number - 1])
            for item in change(self._history, event, position(number, part // 2), str(number))
        ]


def position(number: int, pair: int = 0) -> str:
    """Return the position of a statement, or of a further key that it changes."""
    return after(0, 1, number, pair)
