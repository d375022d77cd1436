"""Find the oldest incomplete transaction of a window: it blocks all later ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeingest.apply.window.contents import RowWithoutEnd
from lakeingest.apply.window.end_markers import EndMarker, OpenTransaction
from lakeingest.plan.end_positions import release_limit
from lakeingest.transaction.completeness import (
    NO_WHOLE_INCARNATION,
    TOO_FEW_PLACES,
    TOO_FEW_ROWS,
    incomplete_by_incarnation,
    incomplete_transactions,
    without_whole_incarnation,
)
from lakeingest.transaction.compressed_detection import SHARED_PLACE
from lakeingest.transaction.cut import first_later_end, first_overtaking, read_past

NO_END = "the END of a later transaction is on the transaction topic, its own is not before it"
ONLY_BEGUN = "it has rows, and the BEGIN of a later transaction follows its own without an END"


@dataclass(frozen=True)
class IncompleteTransaction:
    """Why the oldest incomplete transaction is incomplete.

    Attributes:
        end_offset: Offset of its END; if it has none, of the END that passes it
            (``cut.first_later_end``); if that is its own implied END, of its BEGIN.
        transaction: Its id.
        collection: The table that lacks rows; None where the reason does not concern one table.
        expected: Number of rows that END counted.
        rows_read: Number of distinct rows that were read.
        reason: See ``completeness``; or ``NO_END`` or ``ONLY_BEGUN``.
        named_by: Offset of the END or implied END that has its id; None: none has it.
        written_ms: Kafka timestamp of the END at ``end_offset``, milliseconds since epoch (0:
            unknown).
    """

    end_offset: int
    reason: str
    transaction: str = ""
    collection: str | None = None
    expected: int | None = None
    rows_read: int | None = None
    named_by: int | None = None
    written_ms: int = 0

    @property
    def lacks_rows(self) -> bool:
        """Whether its END is there, and rows that END counts are not, or may not be."""
        return self.reason in (TOO_FEW_ROWS, TOO_FEW_PLACES, NO_WHOLE_INCARNATION)


def first_short(
    changes: DataFrame, boundaries: DataFrame, counted: Column, in_part: Collection[int]
) -> IncompleteTransaction | None:
    """Return the first transaction that ``completeness.incomplete_transactions`` finds.

    Args:
        changes: ``CHANGE`` with ``end_offset``.
        boundaries: ``BOUNDARY``.
        counted: Condition over ``data_collection``.
        in_part: See ``Bounds``.
    """
    incomplete = _first(incomplete_transactions(changes, boundaries, counted), in_part)
    if incomplete is not None and incomplete.reason == TOO_FEW_PLACES:
        # Rare (a COPY into a table without a key, or rows under way): worth a job of its own.
        incomplete = _first(incomplete_by_incarnation(changes, boundaries, counted), in_part)
    return incomplete


def first_interrupted(
    changes: DataFrame,
    boundaries: DataFrame,
    counted: Column,
    unresumed: DataFrame,
    in_part: Collection[int],
) -> IncompleteTransaction | None:
    """Return the first transaction with a repeated BEGIN of which rows are missing.

    Args:
        changes: ``CHANGE`` with ``end_offset``.
        boundaries: ``BOUNDARY``.
        counted: Condition over ``data_collection``.
        unresumed: Result of ``plan.window.without_row_after_begin``.
        in_part: See ``Bounds``.
    """
    interrupted = without_whole_incarnation(changes, boundaries, counted).unionByName(unresumed)
    return _first(interrupted, in_part)


def missing_rows(
    changes: DataFrame, boundaries: DataFrame, counted: Column, ends: Collection[int]
) -> Mapping[int, Mapping[str, int]]:
    """Return the number of rows that transactions lack, by END offset and table.

    Args:
        changes: ``CHANGE`` with ``end_offset``.
        boundaries: ``BOUNDARY``.
        counted: Condition over ``data_collection``.
        ends: END offsets of the transactions that may lack rows; each is in the result.
    """
    missing: dict[int, dict[str, int]] = {end: {} for end in ends}
    lacking = boundaries.where(F.col("end_offset").isin(*ends))
    # A row per table of a transaction that is published in part: a handful.
    for row in incomplete_transactions(changes, lacking, counted).collect():
        missing[row["end_offset"]][row["collection"]] = row["expected"] - row["found"]
    return missing


def first_without_end(
    ends: Sequence[EndMarker], opened: OpenTransaction | None, row: RowWithoutEnd | None
) -> IncompleteTransaction | None:
    """Return the first transaction without END that one of ``ends`` passes; None: there is none.

    Args:
        ends: The window's ENDs that were not released before, in commit order.
        opened: The first BEGIN without END.
        row: The first row whose transaction has no END.
    """
    highest = release_limit(max((end.position for end in ends), default=""))
    if row is not None and highest <= row.position:
        row = None
    later_end = None
    if opened or row:
        below = [replace(end, position=release_limit(end.position)) for end in ends]
        begin_offset, position = opened.offset if opened else None, row.position if row else None
        later_end = first_later_end(below, begin_offset, position)
    overtaken = first_overtaking(ends)
    if overtaken and (later_end is None or overtaken[0].offset < later_end.offset):
        return IncompleteTransaction(overtaken[0].offset, NO_END, named_by=overtaken[1].offset)
    if later_end is None:
        return None
    offset = later_end.offset
    from_begin = opened.transaction if opened and opened.offset < offset else ""
    transaction = from_begin or (row.transaction if row else "")
    # A row without END has the id of an END only if that END is implied.
    if transaction and transaction == later_end.transaction:
        return IncompleteTransaction(offset, ONLY_BEGUN, transaction, named_by=offset)
    return IncompleteTransaction(offset, NO_END, transaction)


def _first(incomplete_rows: DataFrame, in_part: Collection[int]) -> IncompleteTransaction | None:
    if in_part:
        # Of rows in no certain order nothing may be published, however few there are.
        blocks = ~F.col("end_offset").isin(*in_part) | (F.col("reason") == SHARED_PLACE)
        incomplete_rows = incomplete_rows.where(blocks)
    row = incomplete_rows.orderBy("end_offset", "collection").first()
    if row is None:
        return None
    return IncompleteTransaction(
        row["end_offset"],
        row["reason"],
        collection=row["collection"],
        expected=row["expected"],
        rows_read=row["found"],
        named_by=row["end_offset"],
    )


def with_end_record(
    incomplete: IncompleteTransaction, boundaries: DataFrame
) -> IncompleteTransaction:
    """Add what only the records of ENDs have: the transaction's id and the time of writing.

    One transaction is reported, so the rows that lead to it carry neither.

    Args:
        incomplete: The transaction to report.
        boundaries: ``BOUNDARY``.
    """
    offsets = {incomplete.end_offset, incomplete.named_by} - {None}
    rows = boundaries.where(F.col("end_offset").isin(*offsets)).collect()
    ids = {row["end_offset"]: row["id"] for row in rows}
    times = {row["end_offset"]: row["written_at"] for row in rows}
    written_at = times.get(incomplete.end_offset)
    return replace(
        incomplete,
        transaction=incomplete.transaction or ids.get(incomplete.named_by, ""),
        written_ms=int(written_at.timestamp() * 1000) if written_at else 0,
    )


def complete_prefix(
    ends: Sequence[EndMarker], passed: str | None, *lacking: IncompleteTransaction | None
) -> tuple[IncompleteTransaction | None, list[EndMarker]]:
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
