"""Decide whether a window ends the initial snapshot, which is published whole or not at all.

Debezium marks the last row of each table and of the whole snapshot. But topics keep no order
between one another, and an empty table has no row to carry a mark. So the last marker counts only
where no table is still open. Where the marker is missing, a streamed row stands for it, because
streaming starts when the snapshot is over. Rejected: to trust the streamed row alone; that
published a snapshot without the tables that arrived later.

Nothing counts the rows of a snapshot. Its marks prove that all rows are there only where order is
kept: in topics of one partition (``proven_by_marks``). Everywhere else the snapshot waits for a
whole transaction that follows it. Rejected: to publish on the marks while nothing is streamed; the
partition with the last row arrived first, and half a table was published. Rejected, too: to trust
the marks because a recording is finished; a recording that is copied while it grows is not
finished.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum

from lakeingest.apply.window.contents import Attempt, Contents, Portion
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
    contents: Contents, ranges: WindowRanges, frontier: Frontier, *, any_end: bool, final: bool
) -> Phase:
    """Return where the initial snapshot stands.

    It is over only if every partition was read to its watermark or past a streamed row.

    Args:
        contents: What the window holds.
        ranges: How far it was read, and which topics have no record yet.
        frontier: Up to where everything is applied.
        any_end: Whether the window holds the END of a transaction.
        final: Whether the source is finished: topics without a record may stay so.
    """
    if frontier.streaming:
        return Phase.STREAMING
    past = read_past(contents, ranges)
    evidence = any_end or bool(contents.streaming())
    if not any(True for _ in contents.of(Kind.SNAPSHOT)):
        return Phase.STREAMING if evidence and past else Phase.LOADING
    everywhere = final or not ranges.silent
    unmarked = evidence and contents.snapshot_tables_closed() and everywhere
    over = past and (contents.snapshot_marked_complete() or unmarked)
    return Phase.LOADED if over else Phase.LOADING


def read_past(contents: Contents, ranges: WindowRanges) -> bool:
    """Return whether no partition of a window ends in the middle of an initial snapshot.

    Where one does, no snapshot is released, and none is judged by what it lacks.

    Args:
        contents: What the window holds.
        ranges: How far it was read.
    """
    streamed = contents.streaming()
    return all(where in streamed for where in ranges.cut_short)


def proven_by_marks(contents: Contents, ranges: WindowRanges, topics_now: Collection[str]) -> bool:
    """Return whether the end marks prove that no row of the snapshot is still under way.

    A table's own end mark proves it where its topic has one partition. A topic that never had a
    record, or that was made after the window was planned, may hold the rows of another table.

    Args:
        contents: What the window holds.
        ranges: How far it was read.
        topics_now: The data topics that exist after the reading.
    """
    topics = {portion.where.topic for portion in contents.of(Kind.SNAPSHOT)}
    if topics & ranges.unordered or ranges.silent or ranges.cut_short:
        return False
    if not (topics and contents.snapshot_ends_marked()):
        return False
    return {part.topic for part in ranges.data} >= set(topics_now)


def awaited(contents: Contents, ranges: WindowRanges, phase: Phase) -> str | None:
    """Return what the snapshot waits for, as a warning; None where there is no snapshot.

    Args:
        contents: What the window holds; it does not prove that the snapshot is whole.
        ranges: How far it was read.
        phase: Where the snapshot stands.
    """
    topics = {portion.where.topic for portion in contents.of(Kind.SNAPSHOT)}
    if not topics:
        return None
    if phase is Phase.LOADING:
        open_tables = contents.snapshot_tables_open()
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


def new_snapshots(contents: Contents, frontier: Frontier) -> frozenset[Attempt]:
    """Return the snapshots in a window that were taken after the one in the lake.

    If the lake has transactions, a snapshot later than their last commit is new: its positions
    start over. Before the first transaction, a snapshot is new if another run of the connector took
    it, or at another place in the log.
    """
    if not frontier.streaming:
        return frozenset()
    is_new = _is_later if frontier.committed_ms > 0 else _is_another
    portions = contents.of(Kind.SNAPSHOT)
    return frozenset(portion.attempt for portion in portions if is_new(portion, frontier))


def has_another_snapshot(contents: Contents, frontier: Frontier) -> bool:
    """Return whether the window has rows of another snapshot than the one in the lake."""
    return any(_is_another(portion, frontier) for portion in contents.of(Kind.SNAPSHOT))


def _is_later(portion: Portion, frontier: Frontier) -> bool:
    """Return whether a snapshot is later than the last commit in the lake.

    Times alone do not show it: a snapshot has times of the connector's clock, a commit those of the
    database's clock, and the two may differ. So one of another run at a later place is new, too.
    """
    attempt = portion.attempt
    in_lake = Attempt(frontier.snapshot_run, frontier.snapshot_place)
    # Late rows of the snapshot in the lake may be younger than the first commits behind it. Of rows
    # without run and place nothing tells whether they are of that one.
    is_other = attempt == Attempt() or attempt != in_lake
    is_of_a_later_run = (
        bool(in_lake.run and in_lake.place)
        and attempt.run not in (None, in_lake.run)
        and attempt.place > in_lake.place
    )
    return (is_other and portion.source_ms > frontier.committed_ms) or is_of_a_later_run


def _is_another(portion: Portion, frontier: Frontier) -> bool:
    attempt, run_in_lake = portion.attempt, frontier.snapshot_run
    if not frontier.snapshot_place:
        return False
    if attempt.run and run_in_lake:
        return attempt.run != run_in_lake
    return attempt.place != frontier.snapshot_place


def new_snapshot_error() -> DataError:
    """Return the error where a run may not take a new snapshot as the state of the source."""
    message = (
        "The topics hold a new initial snapshot, taken after the one that is in the lake or after "
        "transactions that follow it: the connector started over. If it is a snapshot of all "
        "tables, lakeingest.source.snapshot.again=replace opens a new epoch, in which it replaces "
        "what the tables hold; else load the lake anew (another lakeingest.target.path). The lake "
        "stands at its last publication."
    )
    return DataError(message)
