"""Whether a window ends the initial snapshot, which is published whole or not at all.

Debezium marks the last row of each table and of the whole snapshot, but topics keep no order
between one another and an empty table has no row to carry a mark. So the last marker counts only
where no table is still open, and where it is missing something streamed stands for it, because
streaming starts when the snapshot is over. Rejected: the streamed row's word alone; it published a
snapshot without the tables that arrived later.

Nothing counts the rows of a snapshot, so its marks prove that all of them are there only where
order is kept: in topics of one partition (``proven_by_marks``). Everywhere else a whole transaction
that follows it is awaited. Rejected: to publish on the marks while nothing is streamed; the
partition with the last row arrived first, and half a table was published. Rejected, too: to trust
the marks because a recording is finished; one that is copied while it grows is not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import Enum

from lakeingest.apply.window.contents import Contents
from lakeingest.apply.window.offset_ranges import WindowRanges
from lakeingest.errors import DataError
from lakeingest.frame_schemas import Kind
from lakeingest.ledger.publication import Frontier


class Phase(Enum):
    """Where the initial snapshot stands at the end of a window."""

    LOADING = "rows of it may be to come: no transaction may be released"
    LOADED = "its last rows are in this window"
    STREAMING = "it is in the lake already, or there is none"


def phase_after(
    found: Contents, ranges: WindowRanges, frontier: Frontier, *, any_end: bool, final: bool
) -> Phase:
    """Tell where the initial snapshot stands.

    It is over only if every partition was read to its watermark or past a streamed row.

    Args:
        found: What the window holds.
        ranges: How far it was read, and which topics are still without their first record.
        frontier: Up to where everything is applied.
        any_end: Whether the window holds the END of a transaction.
        final: Whether the source is finished: topics without a record may stay so.
    """
    if frontier.streaming:
        return Phase.STREAMING
    past = read_past(found, ranges)
    evidence = any_end or bool(found.streaming())
    if not any(True for _ in found.of(Kind.SNAPSHOT)):
        return Phase.STREAMING if evidence and past else Phase.LOADING
    everywhere = final or not ranges.silent
    unmarked = evidence and found.snapshot_tables_closed() and everywhere
    over = past and (found.snapshot_marked_complete() or unmarked)
    return Phase.LOADED if over else Phase.LOADING


def read_past(found: Contents, ranges: WindowRanges) -> bool:
    """Return whether no partition of a window ends in the middle of an initial snapshot.

    Where one does, no snapshot is released, and none is judged by what it lacks.

    Args:
        found: What the window holds.
        ranges: How far it was read.
    """
    streamed = found.streaming()
    return all(where in streamed for where in ranges.cut_short)


def proven_by_marks(
    found: Contents, ranges: WindowRanges, topics_now: Callable[[], Collection[str]]
) -> bool:
    """Return whether the end marks prove that no row of the snapshot is still under way.

    A table's own end mark proves it where its topic has one partition. A topic that never had a
    record, or that was made after the window was planned, may hold the rows of another table.

    Args:
        found: What the window holds.
        ranges: How far it was read.
        topics_now: Gives the data topics that exist by now.
    """
    topics = {portion.where.topic for portion in found.of(Kind.SNAPSHOT)}
    if topics & ranges.unordered or ranges.silent or ranges.cut_short:
        return False
    if not (topics and found.snapshot_ends_marked()):
        return False
    return {part.topic for part in ranges.data} >= set(topics_now())


def awaited(found: Contents, ranges: WindowRanges, phase: Phase) -> str | None:
    """Return what the snapshot waits for, as a warning; null where there is no snapshot.

    Args:
        found: What the window holds; it does not prove that the snapshot is whole.
        ranges: How far it was read.
        phase: Where the snapshot stands.
    """
    topics = {portion.where.topic for portion in found.of(Kind.SNAPSHOT)}
    if not topics:
        return None
    if phase is Phase.LOADING:
        open_tables = found.snapshot_tables_open()
        why = (
            f"table {_few(open_tables)} has no end mark yet"
            if open_tables
            else "the mark of its last row is not there yet"
        )
        return f"{_UNPUBLISHED}: {why}. Run again when the connector has written the rest."
    unordered, silent = topics & ranges.unordered, ranges.silent
    if unordered:
        why = f"its end marks are there, but topic {_few(unordered)} may have several partitions"
    elif silent:
        why = f"its end marks are there, but topic {_few(silent)} has no record yet"
    else:
        why = "not every table has an end mark of its own"
    return (
        f"{_UNPUBLISHED}: {why}, so that some of its rows may still be under way. It is published "
        "with the first whole transaction that follows it. If the database is at rest, commit a "
        "change of a row in one of these tables."
    )


_UNPUBLISHED = "The initial snapshot is not published yet"

_SHOWN = 3


def _few(names: Collection[str]) -> str:
    more = f" (and {len(names) - _SHOWN} more)" if len(names) > _SHOWN else ""
    return ", ".join(f"'{name}'" for name in sorted(names)[:_SHOWN]) + more


def has_new_snapshot(found: Contents, frontier: Frontier) -> bool:
    """Return whether a snapshot was taken after the one that the lake holds.

    It is a later one than transactions of ours: its positions start over. Or, before the first of
    them, that of another connector's run, or of another place in the log.
    """
    if not frontier.streaming:
        return False
    if frontier.committed_ms > 0:
        newest = max((portion.source_ms for portion in found.of(Kind.SNAPSHOT)), default=0)
        return newest > frontier.committed_ms or _is_of_a_later_run(found, frontier)
    return has_another_snapshot(found, frontier)


def _is_of_a_later_run(found: Contents, frontier: Frontier) -> bool:
    """Return whether another run of the connector took a snapshot at a later place of the log.

    The clocks of the connector and of the database, which commit times come from, may differ.
    """
    attempts = (portion.attempt for portion in found.of(Kind.SNAPSHOT))
    return any(
        attempt.run not in (None, frontier.snapshot_run) and attempt.place > frontier.snapshot_place
        for attempt in attempts
        if frontier.snapshot_run and frontier.snapshot_place
    )


def has_another_snapshot(found: Contents, frontier: Frontier) -> bool:
    """Return whether rows are of another snapshot than those of which the lake has some."""
    if not frontier.snapshot_place:
        return False
    known = frontier.snapshot_run
    return any(
        attempt.run != known if attempt.run and known else attempt.place != frontier.snapshot_place
        for attempt in (portion.attempt for portion in found.of(Kind.SNAPSHOT))
    )


def refused_snapshot() -> DataError:
    """Return what a run says that may not take a new snapshot for the state of the source."""
    message = (
        "The topics hold a new initial snapshot, taken after the one that is in the lake or after "
        "transactions that follow it: the connector started over. If it is a snapshot of all "
        "tables, lakeingest.source.snapshot.again=replace opens a new epoch, in which it replaces "
        "what the tables hold; else load the lake anew (another lakeingest.target.path). The lake "
        "stands at its last publication."
    )
    return DataError(message)
