"""A committed transaction as a database's own log tells it, one form for all databases."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Operation = Literal["insert", "update", "delete", "truncate"]

Kind = Literal["sum", "crc", "bool"]
"""How a column is measured: integers and booleans are added up, texts by their CRC-32."""


class Unchanged:
    """Stands for a value that the log left out because it did not change."""

    def __repr__(self) -> str:
        """Return its name."""
        return "UNCHANGED"


UNCHANGED = Unchanged()

Value = str | None | Unchanged
"""A value as the log writes it."""


@dataclass(frozen=True)
class Field:
    """A column of one change.

    Attributes:
        kind: How it is measured; None for not at all.
        value: Text of the value, None for NULL.
    """

    kind: Kind | None
    value: Value


@dataclass(frozen=True)
class Change:
    """One change of one row, or a truncate.

    Attributes:
        operation: What happened.
        table: Bare name.
        before: The old row as far as the log has it; for an update without a new key perhaps empty.
        after: The new row by column; empty for delete and truncate.
    """

    operation: Operation
    table: str
    before: Mapping[str, Field] = field(default_factory=dict)
    after: Mapping[str, Field] = field(default_factory=dict)


@dataclass(frozen=True)
class Commit:
    """One committed transaction.

    Attributes:
        identity: What names it, as columns of its line in ``commits.jsonl.gz``.
        changes: What it did to captured tables, in order.
    """

    identity: Mapping[str, int | str]
    changes: Sequence[Change]


def measured(kind: Kind, value: str) -> int:
    """Return what a value adds to the measure of its column."""
    if kind == "sum":
        return int(value)
    if kind == "crc":
        return zlib.crc32(value.encode("utf-8"))
    return int(value in {"t", "true", "1"})
