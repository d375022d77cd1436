"""Cut a window into batches of whole transactions.

Steps: decode and checkpoint the window; find the boundaries; find the first incomplete transaction,
which blocks all later ones; cut the complete prefix into batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeingest.apply.batch_stats import BatchStats, batch_stats
from lakeingest.apply.parallel import in_background, start_in_background
from lakeingest.apply.window.contents import Contents, contents
from lakeingest.apply.window.end_markers import read_end_markers, refuse_disorder, rising
from lakeingest.apply.window.failover_epochs import find_new_epochs
from lakeingest.apply.window.incomplete_transaction import (
    IncompleteTransaction,
    complete_prefix,
    first_interrupted,
    first_short,
    first_without_end,
)
from lakeingest.apply.window.initial_snapshot import (
    Phase,
    awaited,
    has_new_snapshot,
    phase_after,
    proven_by_marks,
    read_past,
    refused_snapshot,
)
from lakeingest.apply.window.offset_ranges import WindowRanges
from lakeingest.apply.window.resnapshot_cut_over import Stretch, stretches
from lakeingest.apply.window.snapshot_attempts import Verdict, judged, late_rows
from lakeingest.apply.window.unreadable_records import unreadable_records
from lakeingest.apply.window.window import Bounds, Window
from lakeingest.engine.local_checkpoint import local_checkpoint
from lakeingest.ledger.publication import Frontier
from lakeingest.plan import window as plan
from lakeingest.plan.spec import PipelineSpec
from lakeingest.position import after
from lakeingest.position.epochs import Epoch
from lakeingest.source.contract import Source
from lakeingest.transaction.cut import Cut, End, cut, first_passing

MAX_BATCHES = 200
"""Batches cut from one window; more are planned from the next one."""


class EpochsOpenedError(Exception):
    """The window must be read again: its ENDs open epochs that its positions do not have."""

    def __init__(self, epochs: tuple[Epoch, ...]) -> None:
        super().__init__()
        self.epochs = epochs


class SnapshotAgainError(Exception):
    """The window must be read again, up to a new snapshot."""

    def __init__(self, found: Sequence[Stretch]) -> None:
        super().__init__()
        self.found = found


def cut_whole_transactions(
    source: Source,
    ranges: WindowRanges,
    frontier: Frontier,
    spec: PipelineSpec,
    counted: Column,
    bounds: Bounds,
) -> Window:
    """Find boundaries, contents and batches of one window.

    Raises:
        EpochsOpenedError: The window was read without knowing its epochs.
        SnapshotAgainError: The window has a new snapshot, which the settings accept.
    """
    markers = source.read([ranges.transactions] if ranges.transactions else [])
    metadata = local_checkpoint(plan.window_metadata(markers, spec))
    topic = local_checkpoint(plan.window_boundaries(metadata, spec))
    decoded = plan.window_changes(source.read(ranges.data), spec)
    if plan.placed_by_rows(spec):
        decoded = local_checkpoint(decoded)
        topic = local_checkpoint(plan.placed(topic, decoded, spec, frontier.end_position))
    boundaries = plan.over(topic)
    below = plan.released_below(frontier.end_position)
    fresh = boundaries.where(F.col("end_position") > F.lit(frontier.end_position))

    def stats(cuts: Sequence[Cut], *, snapshot: bool) -> Callable[[], Sequence[BatchStats]]:
        if not cuts and not snapshot:
            return tuple
        batched = plan.in_batches(changes, fresh, cuts, below, snapshot=snapshot)
        return start_in_background(partial(batch_stats, batched, spec.format))

    # Start each query before its result is needed: to plan a query takes as long as to run it.
    with in_background(partial(read_end_markers, topic, spec)) as pending_ends:
        changes = local_checkpoint(plan.assigned(decoded, fresh))
        with (
            in_background(partial(contents, changes, spec.format, below)) as pending_contents,
            in_background(partial(first_short, changes, fresh, counted)) as pending_short,
        ):
            end_markers = pending_ends()
            all_ends = end_markers.ends
            epochs = find_new_epochs(metadata, end_markers.domains, frontier, spec)
            # The first epoch has the same positions, known or not, unless it is in file order.
            positions_differ = len(epochs) > 1 or any(epoch.in_file_order for epoch in epochs)
            if epochs != spec.epochs and (positions_differ or frontier.end_position):
                raise EpochsOpenedError(epochs)
            ends = [end for end in all_ends if end.position > frontier.end_position]
            refuse_disorder(ends, spec)
            ordered = rising(ends)
            opened = None if _superseded(frontier) else end_markers.opened
            later_end = first_passing(ordered, opened.offset if opened else None)
            unblocked = ordered[: ordered.index(later_end)] if later_end else ordered
            expected_cuts = (
                _cuts(unblocked, ranges, bounds) if frontier.streaming and ranges.whole else ()
            )
            pending_stats = stats(expected_cuts, snapshot=False)
            summaries = pending_contents()
            changes, summaries = _without_superseded(changes, summaries, ranges, frontier, bounds)
            unreadable = unreadable_records(
                changes, summaries, below, spec, initial=not frontier.streaming
            )
            summaries = replace(
                summaries, stopped={w: bad.reached for w, bad in unreadable.items()}
            )
            read_ranges = replace(ranges, cut_short=ranges.cut_short | unreadable.keys())
            phase = phase_after(
                summaries, read_ranges, frontier, any_end=bool(all_ends), final=bounds.final
            )
            incomplete: IncompleteTransaction | None = None
            complete: Sequence[End] = ()
            if phase is not Phase.LOADING and ends:
                has_repeats = any(end.begins > 1 for end in ends)
                interrupted = None
                if has_repeats:
                    records = source.read(ranges.data)
                    unresumed = plan.unresumed(changes, fresh, counted, metadata, records, spec)
                    changes = local_checkpoint(plan.sent_once(changes, fresh))
                    interrupted = first_interrupted(changes, fresh, counted, unresumed)
                read_position = _read_position(summaries, read_ranges)
                without_end = first_without_end(ends, opened, summaries.first_unended(), boundaries)
                candidates = (pending_short(), interrupted, without_end)
                incomplete, complete = complete_prefix(ordered, read_position, *candidates)
    # A partition's last snapshot rows may arrive after the marker in another one. Nothing counts
    # them. So require a whole transaction, which was written after them.
    snapshot = phase is Phase.LOADED and (
        bool(complete) or proven_by_marks(summaries, read_ranges, source.topics)
    )
    loading = phase is not Phase.STREAMING and not snapshot
    cuts = _cuts(complete, ranges, bounds)
    all_cut = not ends or (bool(cuts) and cuts[-1].last_offset == ends[-1].offset)
    read_to = (
        ranges.transactions.end
        if ranges.transactions and all_cut and not end_markers.opened
        else None
    )
    if snapshot or cuts != expected_cuts:
        pending_stats = stats(cuts, snapshot=snapshot)
    window = Window(
        ranges,
        summaries,
        changes,
        fresh,
        snapshot,
        below,
        cuts,
        pending_stats,
        incomplete,
        len(ends) - len(complete),
        tuple(
            plan.told_apart(end.position)
            for end in all_ends
            if end.position <= frontier.end_position
        ),
        epochs,
        ends_read_to=read_to,
        unreadable=unreadable,
        awaited=awaited(summaries, ranges, phase) if loading else None,
        in_the_way=ends[len(complete)] if len(complete) < len(ends) else None,
    )
    if cuts or snapshot or not (frontier.streaming and summaries.has_redelivered()):
        return window
    # This batch has no END. It has every row below the frontier.
    redelivery = Cut(frontier.end_offset + 1, frontier.end_offset, below, 0, 0)
    return replace(window, redelivered=partial(_with_batch, window, redelivery, stats))


def _with_batch(
    window: Window, batch: Cut, stats: Callable[..., Callable[[], Sequence[BatchStats]]]
) -> Window:
    return replace(window, cuts=(batch,), pending_stats=stats((batch,), snapshot=False))


def _without_superseded(
    changes: DataFrame,
    summaries: Contents,
    ranges: WindowRanges,
    frontier: Frontier,
    bounds: Bounds,
) -> tuple[DataFrame, Contents]:
    """Leave out the attempts at an initial snapshot that a later one replaces.

    Tables that a later attempt seems to lack may lie further on. So a window that ends in the
    middle of a snapshot is not judged; nothing of that snapshot is released.

    Raises:
        SnapshotAgainError: A snapshot was taken anew, and the settings accept it.
        DataError: The settings do not accept it, or nothing shows which attempt counts.
    """
    if has_new_snapshot(summaries, frontier):
        if not bounds.snapshot_again:
            raise refused_snapshot()
        raise SnapshotAgainError(stretches(changes, _is_new(frontier)))
    if frontier.streaming:
        verdict = Verdict(late_rows(summaries, frontier))
    elif read_past(summaries, ranges):
        verdict = judged(summaries)
    else:
        verdict = Verdict()
    if verdict.anew is not None:
        incarnations = stretches(changes, F.col("incarnation").eqNullSafe(F.lit(verdict.anew.run)))
        if not verdict.streamed_first(incarnations):
            if not bounds.snapshot_again:
                raise refused_snapshot()
            raise SnapshotAgainError(incarnations)
    if not verdict.superseded:
        return changes, summaries
    names = [(attempt.run, attempt.place) for attempt in verdict.superseded]
    return plan.without_attempts(changes, names), summaries.without(verdict.superseded)


def _is_new(frontier: Frontier) -> Column:
    """Return the condition that a row of a snapshot is of another one than that in the lake."""
    other_run = ~F.col("incarnation").eqNullSafe(F.lit(frontier.snapshot_run))
    if not frontier.committed_ms:
        return other_run
    later = F.col("source_ms") > frontier.committed_ms
    if not (frontier.snapshot_run and frontier.snapshot_place):
        return later
    is_named, place = F.col("incarnation").isNotNull(), plan.snapshot_place()
    in_lake = ~other_run & place.eqNullSafe(F.lit(frontier.snapshot_place))
    of_a_later_run = is_named & other_run & (place > frontier.snapshot_place)
    return (later & ~in_lake) | of_a_later_run


def _superseded(frontier: Frontier) -> bool:
    """Return whether a BEGIN without END may be from before a new snapshot.

    No row shows where the snapshot cuts the transaction topic; the ENDs of its epoch do.
    """
    return frontier.epoch > 0 and frontier.end_position < after(frontier.epoch, 0)


def _cuts(complete: Sequence[End], ranges: WindowRanges, bounds: Bounds) -> tuple[Cut, ...]:
    """Cut the complete transactions into batches."""
    through = bounds.through
    if through is not None and (not complete or complete[-1].offset < through):
        return ()
    planned = cut(complete, bounds.batch_events, bounds.batch_transactions, through)
    cuts = tuple(islice(planned, MAX_BATCHES))
    # Most likely the last batch is not full. Leave it to the next window, which fills it.
    return cuts if ranges.whole or len(cuts) < 2 else cuts[:-1]


def _read_position(summaries: Contents, ranges: WindowRanges) -> str | None:
    """Return the lowest of the highest positions of the partitions that were cut short."""
    streamed = summaries.streaming()
    return min((streamed.get(where, "") for where in ranges.cut_short), default=None)
