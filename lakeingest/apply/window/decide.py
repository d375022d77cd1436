"""Decide what of a window is released: a pure function of what reading the window showed.

``gather.py`` asks Spark, side by side; this module only compares. So each rule (the initial
snapshot, the complete prefix, epochs, ENDs that go back, a BEGIN without END) is tested in
milliseconds. Rejected: to decide while asking, and to leave the reading by an exception when an
answer asks for another reading. The order of the questions then was part of the rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from lakeingest.apply.window.end_markers import EndMarker, OpenTransaction, ascending_prefix
from lakeingest.apply.window.facts import WindowFacts
from lakeingest.apply.window.incomplete_transaction import (
    IncompleteTransaction,
    complete_prefix,
    first_without_end,
)
from lakeingest.apply.window.initial_snapshot import (
    Phase,
    awaited,
    new_snapshot_error,
    phase_after,
    proven_by_marks,
)
from lakeingest.apply.window.offset_ranges import WindowRanges
from lakeingest.apply.window.resnapshot_cut_over import Stretch
from lakeingest.apply.window.window import Bounds
from lakeingest.ledger.publication import Frontier
from lakeingest.position import after
from lakeingest.position.epochs import Epoch
from lakeingest.transaction.compressed_detection import SHARED_PLACE
from lakeingest.transaction.cut import Cut, End, cut, first_later_end, read_past

MAX_BATCHES = 200
"""Batches cut from one window; more are planned from the next one."""


@dataclass(frozen=True)
class Replan:
    """The window must be read again: what its ENDs say was not known when it was read.

    Attributes:
        epochs: Its epochs and all before.
        ends_again: See ``PipelineSpec``.
    """

    epochs: tuple[Epoch, ...]
    ends_again: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Resnapshot:
    """The window must be read again, up to the new snapshot that these stretches and ENDs show."""

    stretches: Sequence[Stretch]
    ends: Sequence[End] = ()


@dataclass(frozen=True)
class Release:
    """What of the window is released; without snapshot and cuts, all of it waits.

    Attributes:
        snapshot: Whether the initial snapshot is complete.
        cuts: Batches of whole transactions.
        incomplete: The transaction that blocks the rest, if one is known to lack something.
        waiting: Number of transactions that are over and stay behind.
        in_the_way: The first END whose transaction is not complete; None: there is none.
        ends_read_to: See ``Window``.
        alone_since: See ``Window``.
        awaited: What the initial snapshot waits for, as a warning; None: it waits for nothing.
        ends: Its complete transactions, if each becomes a version of its own.
    """

    snapshot: bool
    cuts: tuple[Cut, ...]
    incomplete: IncompleteTransaction | None
    waiting: int
    in_the_way: End | None
    ends_read_to: int | None
    awaited: str | None
    alone_since: int = 0
    ends: tuple[End, ...] = ()


def replan(
    epochs: tuple[Epoch, ...], epochs_read_by: tuple[Epoch, ...], frontier: Frontier
) -> Replan | None:
    """Return that a window must be read again because of its epochs; None: it need not be.

    Args:
        epochs: The epochs before the window and those that its ENDs open.
        epochs_read_by: The epochs that its positions have.
        frontier: Up to where everything is applied.
    """
    # The first epoch has the same positions, known or not, unless it is in file order.
    positions_differ = len(epochs) > 1 or any(epoch.in_file_order for epoch in epochs)
    if epochs != epochs_read_by and (positions_differ or frontier.end_position):
        return Replan(epochs)
    return None


def decide(facts: WindowFacts, frontier: Frontier, bounds: Bounds) -> Resnapshot | Release:
    """Decide what of a window is released.

    Args:
        facts: What the window holds; it was read with the right epochs.
        frontier: Up to where everything is applied.
        bounds: Bounds of batches, and what the settings accept.

    Raises:
        DataError: A snapshot was taken anew, and the settings do not accept it.
    """
    if facts.has_resnapshot:
        if not bounds.snapshot_again:
            raise new_snapshot_error()
        return Resnapshot(facts.stretches, facts.own_ends)
    ends = facts.ends_behind(frontier)
    phase = phase_after(
        facts.contents, facts.ranges_read, frontier, any_end=bool(facts.ends), final=bounds.final
    )
    incomplete, complete = (None, ()) if phase is Phase.LOADING else _prefix(facts, frontier)
    # A partition's last snapshot rows may arrive after the marker in another one. Nothing counts
    # them. So require a whole transaction, which was written after them.
    any_whole = any(end.offset not in facts.in_part for end in complete)
    snapshot = phase is Phase.LOADED and (
        any_whole or proven_by_marks(facts.contents, facts.ranges_read, facts.topics)
    )
    loading = phase is not Phase.STREAMING and not snapshot
    cuts = () if loading else _cuts(complete, facts.ranges, bounds)
    return Release(
        snapshot,
        cuts,
        incomplete,
        waiting=len(ends) - len(complete),
        in_the_way=ends[len(complete)] if len(complete) < len(ends) else None,
        ends_read_to=_ends_read_to(facts, ends, cuts),
        awaited=awaited(facts.contents, facts.ranges, phase) if loading else None,
        alone_since=_alone_since(facts),
        ends=tuple(complete) if bounds.each else (),
    )


def likely_cuts(facts: WindowFacts, frontier: Frontier, bounds: Bounds) -> tuple[Cut, ...]:
    """Return the batches of a window if no transaction of it lacks a row.

    They are known with the ENDs. So the statistics of the batches need not wait for the counting of
    rows. If only the first transactions are whole, the first of these batches mostly stay as they
    are.

    Args:
        facts: Ranges, ENDs and BEGINs of the window; the rest does not count.
        frontier: Up to where everything is applied.
        bounds: Bounds of batches.
    """
    if facts.has_repeats(frontier):
        return ()
    ordered = read_past(ascending_prefix(facts.ends_behind(frontier)), facts.settled)
    opened = _blocking_begin(facts, frontier)
    later_end = first_later_end(ordered, opened.offset if opened else None)
    unblocked = ordered[: ordered.index(later_end)] if later_end else ordered
    return _cuts(unblocked, facts.ranges, bounds)


def has_likely_cuts(cuts: tuple[Cut, ...], likely: tuple[Cut, ...]) -> bool:
    """Return whether batches are the first of those that were likely.

    Then what is known of the likely batches holds of them. The rows of the others are pending.
    """
    return cuts == likely[: len(cuts)]


def _prefix(
    facts: WindowFacts, frontier: Frontier
) -> tuple[IncompleteTransaction | None, Sequence[EndMarker]]:
    """Return the first incomplete transaction and the ENDs of the complete ones before it."""
    if facts.short is not None and facts.short.reason == SHARED_PLACE:
        # Compression shows in some transactions only, so the order of no other one is certain.
        return facts.short, ()
    ends, opened = facts.ends_behind(frontier), _blocking_begin(facts, frontier)
    without_end = first_without_end(ends, opened, facts.contents.first_unended())
    lowest = _read_position(facts)
    return complete_prefix(
        ascending_prefix(ends), lowest, facts.short, facts.interrupted, without_end
    )


def _blocking_begin(facts: WindowFacts, frontier: Frontier) -> OpenTransaction | None:
    """Return the first BEGIN without END, unless it may be from before a new snapshot.

    No row shows where the snapshot cuts the transaction topic; the ENDs of its epoch do.
    """
    superseded = frontier.epoch > 0 and frontier.end_position < after(frontier.epoch, 0)
    return None if superseded else facts.opened


def _cuts(complete: Sequence[End], ranges: WindowRanges, bounds: Bounds) -> tuple[Cut, ...]:
    """Cut the complete transactions into batches."""
    through = bounds.through
    if through is not None and (not complete or complete[-1].offset < through):
        return ()
    planned = cut(complete, bounds.batch_events, bounds.batch_transactions, through)
    cuts = tuple(islice(planned, MAX_BATCHES))
    # Most likely the last batch is not full. Leave it to the next window, which fills it.
    return cuts if ranges.whole or len(cuts) < 2 else cuts[:-1]


def _ends_read_to(facts: WindowFacts, ends: Sequence[End], cuts: Sequence[Cut]) -> int | None:
    """Return how far the transaction topic needs no more reading (``Window.ends_read_to``)."""
    transactions = facts.ranges.transactions
    all_cut = not ends or (bool(cuts) and cuts[-1].last_offset == ends[-1].offset)
    return transactions.end if transactions and all_cut and not facts.opened else None


def _alone_since(facts: WindowFacts) -> int:
    """Return since when the last BEGIN has neither END nor row (``Window.alone_since``)."""
    opened = facts.opened
    is_alone = facts.ranges_read.whole and facts.contents.first_unended() is None
    return opened.alone_since if opened and is_alone else 0


def _read_position(facts: WindowFacts) -> str | None:
    """Return the position up to which every partition was read; None: all are read to their end.

    It is the lowest of the highest positions of the partitions that were cut short.
    """
    streamed = facts.contents.streaming()
    reached = [streamed.get(where, "") for where in facts.ranges_read.cut_short]
    if facts.settled is not None:
        reached.append(facts.settled)
    return min(reached, default=None)
