"""Totals of every table after every commit, kept up change by change.

The log of an update does not say what was there before, and leaves out wide values that did not
change. So what each row adds to its table's totals is remembered, as a few integers: the memory is
that of the rows and not of the history. A column that ALTER TABLE adds counts only in rows changed
since, since no log and no event says anything of the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.oracles.changes import Change, Field, Kind, Unchanged, measured
from tests.recordings.oracle import Measures

Key = tuple[str, ...]


@dataclass
class RunningTable:
    """The totals of one table.

    Attributes:
        key: Its primary key.
        names: Measured columns with their kind, in the order they were first seen.
    """

    key: Sequence[str]
    names: dict[str, Kind] = field(default_factory=dict)
    _rows: dict[Key, tuple[int, ...]] = field(default_factory=dict)
    _sums: list[int] = field(default_factory=list)

    @property
    def totals(self) -> Measures:
        """The measures now, named as the recorded runs name them."""
        sums = (f"{kind}_{name}" for name, kind in self.names.items())
        return {"count": len(self._rows), **dict(zip(sums, self._sums, strict=True))}

    def rows_without(self, column: str) -> int:
        """Return how many rows were not changed since ``column`` was added."""
        at = list(self.names).index(column)
        return sum(len(row) <= at for row in self._rows.values())

    def apply(self, change: Change) -> None:
        """Do what the log says.

        Raises:
            ValueError: The row to change is not there, or one to insert is: the log has a gap.
        """
        if change.operation == "truncate":
            self._rows.clear()
            self._sums = [0] * len(self._sums)
            return
        old: tuple[int, ...] | None = None
        if change.operation != "insert":
            where = self._key_of({**change.after, **change.before})
            old = self._rows.pop(where, None)
            if old is None:
                message = (
                    f"{change.operation} of a row of {change.table} that is not there: {where}"
                )
                raise ValueError(message)
            self._add(old, -1)
        if change.operation != "delete":
            where = self._key_of(change.after)
            if where in self._rows:
                message = f"{change.operation} of {change.table} meets a row that is there: {where}"
                raise ValueError(message)
            self._rows[where] = new = self._measure(change.after, old or ())
            self._add(new, 1)

    def _key_of(self, row: Mapping[str, Field]) -> Key:
        return tuple(str(row[name].value) for name in self.key)

    def name(self, kinds: Mapping[str, Kind | None]) -> None:
        """Measure the columns of ``kinds`` that have a kind, if they are not measured yet."""
        for name, kind in kinds.items():
            if kind is not None and name not in self.names:
                self.names[name] = kind
                self._sums.append(0)

    def _measure(self, row: Mapping[str, Field], old: tuple[int, ...]) -> tuple[int, ...]:
        self.name({name: column.kind for name, column in row.items()})
        found = []
        for at, (name, kind) in enumerate(self.names.items()):
            if name not in row:
                break  # Columns are only added at the end: this row is from before.
            value = row[name].value
            if isinstance(value, Unchanged):
                found.append(old[at])
            else:
                found.append(0 if value is None else measured(kind, value))
        return tuple(found)

    def _add(self, row: tuple[int, ...], sign: int) -> None:
        for at, value in enumerate(row):
            self._sums[at] += sign * value


class RunningTotals:
    """The totals of all captured tables.

    Args:
        keys: Primary key columns per captured table.
    """

    def __init__(self, keys: Mapping[str, Sequence[str]]) -> None:
        self.tables = {table: RunningTable(key) for table, key in keys.items()}

    def apply(self, changes: Sequence[Change]) -> tuple[Counter[str], dict[str, Measures]]:
        """Do ``changes``; return how many each table had, and the totals of those tables."""
        for change in changes:
            self.tables[change.table].apply(change)
        counted = Counter(change.table for change in changes)
        return counted, {table: self.tables[table].totals for table in counted}

    @property
    def totals(self) -> dict[str, Measures]:
        """The totals of all tables."""
        return {table: running.totals for table, running in self.tables.items()}
