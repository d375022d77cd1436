"""Short histories by hand: what a statement sends, delivered when the test says so."""

from __future__ import annotations

from collections.abc import Iterable

from lakeingest.position import after
from tests.law.history import Change, change
from tests.law.oracle import SourceTable, Statement


class Steps:
    """A source whose statements are numbered from 1, in its order."""

    def __init__(self, *statements: Statement) -> None:
        """Execute all statements at once; their events wait for ``sent``."""
        self.source = SourceTable()
        self._events = [self.source.execute(statement) for statement in statements]

    def sent(self, *numbers: int) -> list[Change]:
        """Return the events of these statements, in this order of arrival."""
        return [
            item
            for number in numbers
            for event in self._events[number - 1]
            for item in change(0, event, position(number))
        ]


def position(number: int) -> str:
    """Return the position of a statement."""
    return after(0, 1, number)


def all_of(*batches: Iterable[Change]) -> list[Change]:
    """Join changes to one batch."""
    return [item for batch in batches for item in batch]
