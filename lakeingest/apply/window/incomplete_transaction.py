"""Find the oldest incomplete transaction of a window: it blocks all later ones."""

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
    """Why the oldest incomplete transaction is incomplete.

    Attributes:
        end_offset: Offset of its END; if it has none, of the END that passes it
            (``cut.first_passing``).
        transaction: Its id.
        collection: The table that lacks rows; None where the reason does not concern one table.
        expected: Number of rows that END counted.
        found: Number of distinct rows that were read.
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
    incomplete = _first(plan.shortfalls(changes, boundaries, counted), boundaries)
    if incomplete is not None and incomplete.reason == TOO_FEW_PLACES:
        # Rare (a COPY into a table without a key, or rows under way): worth a job of its own.
        incomplete = _first(
            plan.shortfalls_by_incarnation(changes, boundaries, counted), boundaries
        )
    if incomplete is not None and incomplete.reason == SHARED_PLACE:
        raise _compressed_error(incomplete)
    return incomplete


def _compressed_error(first: IncompleteTransaction) -> DataError:
    return DataError(
        f"Transaction {first.transaction} has rows of several statements on '{first.collection}' "
        "at one place of the binlog: MySQL compressed it (binlog_transaction_compression=ON). "
        "Before version 3.7 Debezium does not tell the order of such rows for certain, so none of "
        "them was applied. Set binlog_transaction_compression=OFF on the server, or upgrade the "
        "connector to Debezium 3.7 or later; either holds for transactions to come. For those in "
        "the topics already, let the connector make a new snapshot "
        "(lakeingest.source.snapshot.again=replace) or load the lake anew."
    )


def first_interrupted(
    changes: DataFrame, boundaries: DataFrame, counted: Column, unresumed: DataFrame
) -> IncompleteTransaction | None:
    """Return the first transaction that ``plan.interrupted`` or ``plan.unresumed`` finds.

    Args:
        changes: ``CHANGE`` with ``end_offset``.
        boundaries: ``BOUNDARY``.
        counted: Condition over ``data_collection``.
        unresumed: Result of ``plan.unresumed``.
    """
    lacking = plan.interrupted(changes, boundaries, counted).unionByName(unresumed)
    return _first(lacking, boundaries)


def first_without_end(
    ends: Sequence[SeenEnd], opened: Opened | None, row: Unended | None, boundaries: DataFrame
) -> IncompleteTransaction | None:
    """Return the first transaction without END that one of ``ends`` passes; None: there is none.

    Args:
        ends: The window's ENDs that were not released before, in commit order.
        opened: The first BEGIN without END.
        row: The first row whose transaction has no END.
        boundaries: ``BOUNDARY``.
    """
    highest = plan.released_below(max((end.position for end in ends), default=""))
    if row is not None and highest <= row.position:
        row = None
    later_end = None
    if opened or row:
        below = [replace(end, position=plan.released_below(end.position)) for end in ends]
        begin_offset, position = opened.offset if opened else None, row.position if row else None
        later_end = first_passing(below, begin_offset, position)
    overtaken = first_overtaking(ends)
    if overtaken and (later_end is None or overtaken[0].offset < later_end.offset):
        offset = overtaken[0].offset
        transaction, _ = _of_end(boundaries, overtaken[1].offset)
    elif later_end is not None:
        offset = later_end.offset
        from_begin = opened.transaction if opened and opened.offset < offset else ""
        transaction = from_begin or (row.transaction if row else "")
    else:
        return None
    _, written_ms = _of_end(boundaries, offset)
    return IncompleteTransaction(offset, transaction, None, None, None, NO_END, written_ms)


def _first(incomplete_rows: DataFrame, boundaries: DataFrame) -> IncompleteTransaction | None:
    row = incomplete_rows.orderBy("end_offset", "collection").first()
    if row is None:
        return None
    transaction, written_ms = _of_end(boundaries, row["end_offset"])
    return IncompleteTransaction(
        row["end_offset"],
        transaction,
        row["collection"],
        row["expected"],
        row["found"],
        row["reason"],
        written_ms,
    )


def _of_end(boundaries: DataFrame, offset: int) -> tuple[str, int]:
    """Return id and Kafka timestamp of an END; only one is reported, so rows carry neither."""
    boundary = boundaries.where(F.col("end_offset") == offset).first()
    timestamp = boundary["written_at"] if boundary else None
    return boundary["id"] if boundary else "", int(timestamp.timestamp() * 1000) if timestamp else 0


def complete_prefix(
    ends: Sequence[SeenEnd], passed: str | None, *lacking: IncompleteTransaction | None
) -> tuple[IncompleteTransaction | None, list[SeenEnd]]:
    """Return the first incomplete transaction, and the complete ones before it.

    The first is None where nothing is known to be missing: some partition was not read past it yet.

    Args:
        ends: The window's ENDs that were not released before, in commit order.
        passed: See ``cut.read_past``.
        lacking: Results of ``first_short``, ``first_interrupted`` and ``first_without_end``.
    """
    ends_read_past = read_past(ends, passed)
    candidates = [candidate for candidate in lacking if candidate is not None]
    first = min(
        candidates,
        key=lambda candidate: (candidate.end_offset, candidate.collection or ""),
        default=None,
    )
    if first is None:
        return None, ends_read_past
    complete = [end for end in ends_read_past if end.offset < first.end_offset]
    return (first if len(complete) < len(ends_read_past) else None), complete
