"""The oldest transaction of a window that is not complete: it holds all later ones back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Row

from lakeingest.apply.seen_ends import SeenEnd
from lakeingest.plan import window as plan
from lakeingest.transaction.cut import End


@dataclass(frozen=True)
class Shortfall:
    """Why the oldest transaction that is not complete is not.

    Attributes:
        transaction: Its id.
        collection: The table that lacks rows; null where it is not about one table.
        expected: Rows that END counted.
        found: Distinct rows seen.
        reason: See ``completeness``.
        written_ms: Kafka timestamp of its END, milliseconds since epoch (0: unknown).
        waiting: Transactions held back, this one included.
    """

    transaction: str
    collection: str | None
    expected: int | None
    found: int | None
    reason: str
    written_ms: int
    waiting: int


def first_short(
    changes: DataFrame, boundaries: DataFrame, counted: Column, passed: str | None
) -> Row | None:
    """Return the first transaction that ``plan.shortfalls`` finds, as it describes it."""
    return _first(plan.shortfalls(changes, boundaries, counted, passed))


def first_interrupted(changes: DataFrame, boundaries: DataFrame, counted: Column) -> Row | None:
    """Return the first transaction that ``plan.interrupted`` finds, as it describes it."""
    return _first(plan.interrupted(changes, boundaries, counted))


def _first(lacking: DataFrame) -> Row | None:
    return lacking.orderBy("end_offset", "collection").first()


def complete_prefix(
    ends: Sequence[SeenEnd], *lacking: Row | None
) -> tuple[Shortfall | None, list[End]]:
    """Return the complete transactions before the first one that lacks something, and why it does.

    Args:
        ends: The window's ENDs that were not released before, in commit order.
        lacking: What ``first_short`` and ``first_interrupted`` found.
    """
    found = [row for row in lacking if row is not None]
    if not found:
        return None, list(ends)
    first = min(found, key=lambda row: (row["end_offset"], row["collection"] or ""))
    complete: list[End] = [end for end in ends if end.offset < first["end_offset"]]
    written = first["written_at"]
    shortfall = Shortfall(
        first["id"],
        first["collection"],
        first["expected"],
        first["found"],
        first["reason"],
        int(written.timestamp() * 1000) if written else 0,
        len(ends) - len(complete),
    )
    return shortfall, complete
