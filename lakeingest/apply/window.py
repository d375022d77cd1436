"""Read one window and settle which batches it holds.

Steps: fix the ranges; decode and keep the window; find the boundaries; find the first transaction
that is not complete, which holds all later ones; cut the complete prefix into batches. The window
is kept (memory, then disk) until its batches are applied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeingest.apply.contents import Contents, contents
from lakeingest.apply.reach import Reach, plan_reach
from lakeingest.apply.share import Share, shares
from lakeingest.engine.held import held
from lakeingest.errors import DataError
from lakeingest.ledger.publication import Frontier
from lakeingest.plan import window as plan
from lakeingest.plan.spec import PipelineSpec
from lakeingest.shape import Kind
from lakeingest.source.contract import Source
from lakeingest.transaction.cut import Cut, End, cut

MAX_BATCHES = 200
"""Batches cut from one window; more are planned from the next one."""


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


@dataclass(frozen=True)
class Window:
    """What one reading of the log holds.

    Attributes:
        reach: The ranges read.
        contents: Summaries of the records.
        changes: All changes with their transaction's ``end_offset`` (null: pending), held.
        boundaries: Transactions that are over, held.
        snapshot: Whether batch 0, the initial snapshot, is complete in it.
        frontier_position: Position above everything released before the window.
        cuts: Batches of whole transactions, numbered from 1.
        shares: What each batch holds.
        shortfall: The transaction that holds the rest back, if any.
        again: Positions of ENDs that were released before and came again.
    """

    reach: Reach
    contents: Contents
    changes: DataFrame
    boundaries: DataFrame
    snapshot: bool
    frontier_position: str
    cuts: tuple[Cut, ...] = ()
    shares: tuple[Share, ...] = ()
    shortfall: Shortfall | None = None
    again: tuple[str, ...] = field(default_factory=tuple)


@dataclass(frozen=True)
class Bounds:
    """How large windows and batches may be.

    Attributes:
        window_records: Records that a window aims at.
        batch_events: ``lakeingest.batch.max.events``.
        batch_transactions: ``lakeingest.commit.max.transactions``.
        through: END that must close the first batch (see ``cut``).
        final: Whether the source gets no more records.
    """

    window_records: int
    batch_events: int
    batch_transactions: int | None
    through: int | None = None
    final: bool = False


def read_window(
    source: Source,
    transaction_topic: str,
    frontier: Frontier,
    spec: PipelineSpec,
    counted: Column,
    bounds: Bounds,
) -> Window | None:
    """Read a window and settle its batches; its rows are held while the window is referenced.

    Returns:
        Null when there is not one record that was not looked at.
    """
    reach = plan_reach(source, transaction_topic, frontier, bounds.window_records)
    if reach.nothing:
        return None
    records = source.read([reach.transactions] if reach.transactions else [])
    metadata = held(plan.window_metadata(records))
    boundaries = held(plan.window_boundaries(metadata, spec))
    all_ends = _collected(boundaries, spec)
    fresh = boundaries.where(F.col("end_position") > F.lit(frontier.end_position))
    ends = [end for end in all_ends if end.position > frontier.end_position]
    again = tuple(end.position for end in all_ends if end.position <= frontier.end_position)
    decoded = plan.window_changes(source.read(reach.data), spec)
    changes = held(plan.assigned(decoded, fresh))
    found = contents(changes)
    _refuse_new_snapshot(found, frontier)
    snapshot, streaming = _snapshot(found, reach, frontier, bounds, any_end=bool(all_ends))
    shortfall: Shortfall | None = None
    complete: list[End] = []
    if streaming:
        shortfall, complete = _complete_prefix(changes, fresh, ends, counted, _passed(found, reach))
    if snapshot and not complete and not bounds.final:
        # A partition's last snapshot rows may arrive after the marker in another one. Nothing
        # counts them; a whole transaction that was written after them has at least arrived.
        snapshot = not (all_ends or found.streaming())
    planned = cut(complete, bounds.batch_events, bounds.batch_transactions, bounds.through)
    cuts = tuple(islice(planned, MAX_BATCHES))
    summaries: tuple[Share, ...] = ()
    if cuts or snapshot:
        batched = plan.in_batches(changes, fresh, cuts, frontier.end_position, snapshot=snapshot)
        summaries = tuple(shares(batched))
    return Window(
        reach,
        found,
        changes,
        fresh,
        snapshot,
        frontier.end_position,
        cuts,
        summaries,
        shortfall,
        again,
    )


@dataclass(frozen=True)
class _SeenEnd(End):
    begins: int = 0


def _collected(boundaries: DataFrame, spec: PipelineSpec) -> list[_SeenEnd]:
    """Bring the END summaries to the driver (offset, count, position), in commit order."""
    rows = (
        boundaries.select("end_offset", "event_count", "end_position", "begins", "domain")
        .orderBy("end_offset")
        .collect()
    )
    unreadable = [row["end_offset"] for row in rows if not row["end_position"]]
    if unreadable:
        message = (
            f"The record at offset {unreadable[0]} of the transaction topic cannot be read (broken "
            f"JSON, or an id without a position for a {spec.connector} connector); "
            f"{len(unreadable)} such in all. Without it a transaction's rows cannot be counted. "
            "Look at the record; load the lake anew if the topic cannot be repaired."
        )
        raise DataError(message)
    domains = sorted({row["domain"] for row in rows})
    if len(domains) > 1:
        message = (
            f"The transaction ids of this {spec.connector} connector come from {len(domains)} "
            f"domains ({', '.join(domains[:3])}), whose numbers cannot be compared. One pipeline "
            "follows one GTID domain or server uuid; after a failover load the lake anew."
        )
        raise DataError(message)
    return [
        _SeenEnd(row["end_offset"], row["event_count"], row["end_position"], row["begins"])
        for row in rows
    ]


def _refuse_new_snapshot(found: Contents, frontier: Frontier) -> None:
    """Stop at a snapshot that was taken after transactions of ours: its positions start over."""
    if not frontier.streaming:
        return
    newest = max((portion.source_ms for portion in found.of(Kind.SNAPSHOT)), default=0)
    if newest > frontier.committed_ms > 0:
        message = (
            "The topics hold a new initial snapshot, taken after transactions that are in the lake "
            "already: the connector started over. Load the lake anew from it (another "
            "lakeingest.target.path). The lake stands at its last publication."
        )
        raise DataError(message)


def _snapshot(
    found: Contents, reach: Reach, frontier: Frontier, bounds: Bounds, *, any_end: bool
) -> tuple[bool, bool]:
    """Tell whether the initial snapshot is complete here, and whether transactions may follow.

    Every partition must be read to its watermark or to a streamed row, and then: the markers say
    so. Where the last marker is missing (its table was empty) something streamed says so, too,
    because streaming starts when the snapshot is over; but topics keep no order between one
    another, so only if no table is open and no topic is still without its first record. Taking
    the streamed row's word alone publishes a snapshot without the tables that arrive later.
    """
    if frontier.streaming:
        return False, True
    streamed = found.streaming()
    read_past = all(where in streamed for where in reach.cut_short)
    has_rows = any(True for _ in found.of(Kind.SNAPSHOT))
    evidence = any_end or bool(streamed)
    if not has_rows:
        return False, evidence and read_past
    everywhere = bounds.final or not reach.silent
    unmarked = evidence and found.snapshot_tables_closed() and everywhere
    over = read_past and (found.snapshot_marked_complete() or unmarked)
    return over, over


def _passed(found: Contents, reach: Reach) -> str | None:
    """Return the lowest of the highest positions of the partitions that were cut short."""
    streamed = found.streaming()
    data = [where for where in reach.cut_short if where.topic != _topic(reach)]
    return min((streamed.get(where, "") for where in data), default=None)


def _topic(reach: Reach) -> str:
    return reach.transactions.topic if reach.transactions else ""


def _complete_prefix(
    changes: DataFrame,
    boundaries: DataFrame,
    ends: Sequence[_SeenEnd],
    counted: Column,
    passed: str | None,
) -> tuple[Shortfall | None, list[End]]:
    if not ends:
        return None, []
    lacking = plan.shortfalls(changes, boundaries, counted, passed)
    if any(end.begins > 1 for end in ends):
        lacking = lacking.unionByName(plan.interrupted(changes, boundaries, counted))
    first = lacking.orderBy("end_offset", "collection").first()
    if first is None:
        return None, list(ends)
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
