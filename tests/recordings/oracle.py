"""The source's truth beside a recorded run: final tables, and totals after every commit.

The totals come from an independent logical decoding slot, not from Debezium, so that they can
disagree with what the connector sent. They say only what a commit changed; this module carries the
rest forward, because a reader of the lake always sees all tables at once.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

NULL = "\\N"
"""How the oracle's CSV files and ``lakeingest show --output csv`` write NULL."""

Measures = Mapping[str, int]
"""Totals of one table: ``count``, ``sum_<column>``, ``crc_<column>``, ``bool_<column>``."""

Totals = Mapping[str, Measures]
"""Totals of every table, by bare table name, at one commit of the source."""


@dataclass(frozen=True)
class Rows:
    """A table as text: header and rows in the order of the file."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def parse_csv(text: str) -> Rows:
    """Return header and rows of a CSV text; quoted line breaks stay inside their value."""
    reader = csv.reader(io.StringIO(text, newline=""))
    header = tuple(next(reader))
    return Rows(header, tuple(tuple(row) for row in reader))


def read_csv(path: Path) -> Rows:
    """Return header and rows of a gzipped CSV file."""
    # newline="" keeps a carriage return inside a value, which text mode would turn into "\n".
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return parse_csv(file.read())


@dataclass(frozen=True)
class Oracle:
    """The truth of one run: the folder ``oracle`` beside the recorded formats."""

    folder: Path

    @property
    def knows_final(self) -> bool:
        """Whether ``final`` is how the tables end."""
        return True

    @cached_property
    def tables(self) -> tuple[str, ...]:
        """Bare names of the tables of the source, sorted."""
        return tuple(
            sorted(path.name.removesuffix(".csv.gz") for path in self.folder.glob("final/*.csv.gz"))
        )

    def final(self, table: str) -> Rows:
        """Return ``table`` as the database held it after the run, ordered by key."""
        return read_csv(self.folder / "final" / f"{table}.csv.gz")

    @cached_property
    def types(self) -> Mapping[str, Mapping[str, str]] | None:
        """The source's own column types per table before the run; None where not recorded."""
        path = self.folder / "initial" / "types.json"
        if not path.exists():
            return None
        types: dict[str, dict[str, str]] = json.loads(path.read_text(encoding="utf-8"))
        return types

    @cached_property
    def commits(self) -> tuple[Totals, ...] | None:
        """Totals after commit 0 (before the run), 1, 2 …; None where not recorded."""
        path = self.folder / "commits.jsonl.gz"
        return tuple(carry_forward(path)) if path.exists() else None


def carry_forward(path: Path) -> Iterator[Totals]:
    """Yield the totals of all tables after each line of ``path``.

    Raises:
        ValueError: The lines are not numbered 0, 1, 2 …
    """
    state: dict[str, Measures] = {}
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for number, line in enumerate(file):
            commit = json.loads(line)
            if commit["n"] != number:
                message = f"{path}: line {number} holds commit {commit['n']}"
                raise ValueError(message)
            # A new dictionary per commit; measures of untouched tables are shared, not copied.
            state = {**state, **commit["totals"]}
            yield state
