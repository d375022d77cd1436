"""Whether a window ends the initial snapshot, which is published whole or not at all.

Debezium marks the last row of each table and of the whole snapshot, but topics keep no order
between one another and an empty table has no row to carry a mark. So the last marker counts only
where no table is still open, and where it is missing something streamed stands for it, because
streaming starts when the snapshot is over. Rejected: the streamed row's word alone; it published a
snapshot without the tables that arrived later.
"""

from __future__ import annotations

from enum import Enum

from lakeingest.apply.contents import Contents
from lakeingest.apply.reach import Reach
from lakeingest.errors import DataError
from lakeingest.ledger.publication import Frontier
from lakeingest.shape import Kind


class Phase(Enum):
    """Where the initial snapshot stands at the end of a window."""

    LOADING = "rows of it may be to come: no transaction may be released"
    LOADED = "its last rows are in this window"
    STREAMING = "it is in the lake already, or there is none"


def phase_after(
    found: Contents, reach: Reach, frontier: Frontier, *, any_end: bool, final: bool
) -> Phase:
    """Tell where the initial snapshot stands.

    It is over only if every partition was read to its watermark or past a streamed row.

    Args:
        found: What the window holds.
        reach: How far it was read, and which topics are still without their first record.
        frontier: Up to where everything is applied.
        any_end: Whether the window holds the END of a transaction.
        final: Whether the source gets no more records.
    """
    if frontier.streaming:
        return Phase.STREAMING
    streamed = found.streaming()
    read_past = all(where in streamed for where in reach.cut_short)
    evidence = any_end or bool(streamed)
    if not any(True for _ in found.of(Kind.SNAPSHOT)):
        return Phase.STREAMING if evidence and read_past else Phase.LOADING
    everywhere = final or not reach.silent
    unmarked = evidence and found.snapshot_tables_closed() and everywhere
    over = read_past and (found.snapshot_marked_complete() or unmarked)
    return Phase.LOADED if over else Phase.LOADING


def has_new_snapshot(found: Contents, frontier: Frontier) -> bool:
    """Tell whether a snapshot was taken after transactions of ours: its positions start over."""
    if not frontier.streaming:
        return False
    newest = max((portion.source_ms for portion in found.of(Kind.SNAPSHOT)), default=0)
    return newest > frontier.committed_ms > 0


def refused_snapshot() -> DataError:
    """Return what a run says that may not take a new snapshot for the state of the source."""
    message = (
        "The topics hold a new initial snapshot, taken after transactions that are in the lake "
        "already: the connector started over. If it is a snapshot of all tables, "
        "lakeingest.source.snapshot.again=replace opens a new epoch, in which it replaces what "
        "the tables hold; else load the lake anew (another lakeingest.target.path). The lake "
        "stands at its last publication."
    )
    return DataError(message)
