"""The oldest transaction of a window that is not complete: it holds all later ones back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeingest.apply.window.contents import Unended
from lakeingest.apply.window.end_markers import Opened, SeenEnd
from lakeingest.errors import DataError
from lakeingest.plan import window as plan
from lakeingest.transaction.completeness import TOO_FEW_PLACES
from lakeingest.transaction.compressed_detection import SHARED_PLACE
from lakeingest.transaction.cut import first_overtaking, first_passing, read_past

NO_END = "the END of a later transaction is on the transaction topic, its own is not before it"


@dataclass(frozen=True)
class IncompleteTransaction:
    """Why the oldest transaction that is not complete is not.

    Attributes:
        end_offset: Offset of its END; where it has none, of the END that passes it.
        transaction: Its id.
        collection: The table that lacks rows; null where it is not about one table.
        expected: Rows that END counted.
        found: Distinct rows seen.
        reason: See ``completeness``; or ``NO_END``.
        written_ms: Kafka timestamp of the END at ``end_offset``, milliseconds since epoch (0:
            unknown).
    """

    end_offset: int
    transaction: str
    collection: str | None
    expected: int | None
    found: int | None
    reason: str
    written_ms: int


def first_short(
    changes: DataFrame, boundaries: DataFrame, counted: Column
) -> IncompleteTransaction | None:
    """Return the first transaction that ``plan.shortfalls`` finds.

    Raises:
        DataError: Its rows cannot be ordered; waiting for more of them is of no use.
    """
    short = _first(plan.shortfalls(changes, boundaries, counted), boundaries)
    if short is not None and short.reason == TOO_FEW_PLACES:
        # Rare, a COPY into a table without a key or rows under way: worth a job of its own.
        short = _first(plan.shortfalls_by_incarnation(changes, boundaries, counted), boundaries)
    if short is not None and short.reason == SHARED_PLACE:
        raise _compressed(short)
    return short


def _compressed(short: IncompleteTransaction) -> DataError:
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
) -> IncompleteTransaction | None:
    """Return the first transaction that ``plan.interrupted`` finds."""
    return _first(plan.interrupted(changes, boundaries, counted), boundaries)


def first_without_end(
    ends: Sequence[SeenEnd], opened: Opened | None, row: Unended | None, boundaries: DataFrame
) -> IncompleteTransaction | None:
    """Return the transaction without END that the first of ``ends`` passes, if any does.

    Args:
        ends: The window's ENDs that were not released before, in commit order.
        opened: The first BEGIN without END.
        row: The first row whose transaction has no END.
        boundaries: ``BOUNDARY``.
    """
    highest = plan.released_below(max((end.position for end in ends), default=""))
    if row is not None and highest <= row.position:
        row = None
    passing = None
    if opened or row:
        below = [replace(end, position=plan.released_below(end.position)) for end in ends]
        begun, position = opened.offset if opened else None, row.position if row else None
        passing = first_passing(below, begun, position)
    overtaking = first_overtaking(ends)
    if overtaking and (passing is None or overtaking[0].offset < passing.offset):
        offset = overtaking[0].offset
        transaction, _ = _of_end(boundaries, overtaking[1].offset)
    elif passing is not None:
        offset = passing.offset
        named = opened.transaction if opened and opened.offset < offset else ""
        transaction = named or (row.transaction if row else "")
    else:
        return None
    _, written_ms = _of_end(boundaries, offset)
    return IncompleteTransaction(offset, transaction, None, None, None, NO_END, written_ms)


def _first(lacking: DataFrame, boundaries: DataFrame) -> IncompleteTransaction | None:
    found = lacking.orderBy("end_offset", "collection").first()
    if found is None:
        return None
    transaction, written_ms = _of_end(boundaries, found["end_offset"])
    return IncompleteTransaction(
        found["end_offset"],
        transaction,
        found["collection"],
        found["expected"],
        found["found"],
        found["reason"],
        written_ms,
    )


def _of_end(boundaries: DataFrame, offset: int) -> tuple[str, int]:
    """Return id and Kafka timestamp of an END; only one is ever reported, so rows carry neither."""
    ended = boundaries.where(F.col("end_offset") == offset).first()
    written = ended["written_at"] if ended else None
    return ended["id"] if ended else "", int(written.timestamp() * 1000) if written else 0


def complete_prefix(
    ends: Sequence[SeenEnd], passed: str | None, *lacking: IncompleteTransaction | None
) -> tuple[IncompleteTransaction | None, list[SeenEnd]]:
    """Return the complete transactions before the first that is not, and what that one lacks.

    Null where it lacks nothing that is known: some partition was not read past it yet.

    Args:
        ends: The window's ENDs that were not released before, in commit order.
        passed: See ``cut.read_past``.
        lacking: What ``first_short``, ``first_interrupted`` and ``first_without_end`` found.
    """
    looked_at = read_past(ends, passed)
    found = [short for short in lacking if short is not None]
    first = min(found, key=lambda short: (short.end_offset, short.collection or ""), default=None)
    if first is None:
        return None, looked_at
    complete = [end for end in looked_at if end.offset < first.end_offset]
    return (first if len(complete) < len(looked_at) else None), complete
