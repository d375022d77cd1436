"""The oldest transaction of a window that is not complete: it holds all later ones back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeingest.apply.seen_ends import SeenEnd
from lakeingest.errors import DataError
from lakeingest.plan import window as plan
from lakeingest.transaction.crowded import SHARED_PLACE
from lakeingest.transaction.cut import read_past


@dataclass(frozen=True)
class Shortfall:
    """Why the oldest transaction that is not complete is not.

    Attributes:
        end_offset: Offset of its END.
        transaction: Its id.
        collection: The table that lacks rows; null where it is not about one table.
        expected: Rows that END counted.
        found: Distinct rows seen.
        reason: See ``completeness``.
        written_ms: Kafka timestamp of its END, milliseconds since epoch (0: unknown).
    """

    end_offset: int
    transaction: str
    collection: str | None
    expected: int | None
    found: int | None
    reason: str
    written_ms: int


def first_short(changes: DataFrame, boundaries: DataFrame, counted: Column) -> Shortfall | None:
    """Return the first transaction that ``plan.shortfalls`` finds.

    Raises:
        DataError: Its rows cannot be ordered; waiting for more of them is of no use.
    """
    short = _first(plan.shortfalls(changes, boundaries, counted), boundaries)
    if short is not None and short.reason == SHARED_PLACE:
        raise _compressed(short)
    return short


def _compressed(short: Shortfall) -> DataError:
    return DataError(
        f"Transaction {short.transaction} has rows of several statements on '{short.collection}' "
        "at one place of the binlog: MySQL compressed it (binlog_transaction_compression=ON). "
        "Before version 3.7 Debezium does not tell the order of such rows for certain, so none of "
        "them was applied. Set binlog_transaction_compression=OFF on the server, or upgrade the "
        "connector to Debezium 3.7 or later; either holds for transactions to come. For those in "
        "the topics already, let the connector make a new snapshot "
        "(lakeingest.source.snapshot.again=replace) or load the lake anew."
    )


def first_interrupted(
    changes: DataFrame, boundaries: DataFrame, counted: Column
) -> Shortfall | None:
    """Return the first transaction that ``plan.interrupted`` finds."""
    return _first(plan.interrupted(changes, boundaries, counted), boundaries)


def _first(lacking: DataFrame, boundaries: DataFrame) -> Shortfall | None:
    found = lacking.orderBy("end_offset", "collection").first()
    if found is None:
        return None
    # Only the one that is reported is looked up; carrying ids along would burden every row.
    ended = boundaries.where(F.col("end_offset") == found["end_offset"]).first()
    written = ended["written_at"] if ended else None
    return Shortfall(
        found["end_offset"],
        ended["id"] if ended else "",
        found["collection"],
        found["expected"],
        found["found"],
        found["reason"],
        int(written.timestamp() * 1000) if written else 0,
    )


def complete_prefix(
    ends: Sequence[SeenEnd], passed: str | None, *lacking: Shortfall | None
) -> tuple[Shortfall | None, list[SeenEnd]]:
    """Return the complete transactions before the first that is not, and what that one lacks.

    Null where it lacks nothing that is known: some partition was not read past it yet.

    Args:
        ends: The window's ENDs that were not released before, in commit order.
        passed: See ``cut.read_past``.
        lacking: What ``first_short`` and ``first_interrupted`` found.
    """
    looked_at = read_past(ends, passed)
    found = [short for short in lacking if short is not None]
    first = min(found, key=lambda short: (short.end_offset, short.collection or ""), default=None)
    if first is None:
        return None, looked_at
    complete = [end for end in looked_at if end.offset < first.end_offset]
    return (first if len(complete) < len(looked_at) else None), complete
