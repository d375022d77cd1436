"""Cut a window into batches of whole transactions.

Steps: gather what the window shows (``gather.py``), decide what of it is released (``decide.py``),
and make the window whose batches are applied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from lakeingest.apply.batch_stats import BatchStats
from lakeingest.apply.window.decide import Release, Replan, Resnapshot, decide, has_likely_cuts
from lakeingest.apply.window.ends_again import ends_again
from lakeingest.apply.window.facts import WindowFacts
from lakeingest.apply.window.gather import Gathered, WindowFrames, gather
from lakeingest.apply.window.incomplete_transaction import with_end_record
from lakeingest.apply.window.offset_ranges import WindowRanges
from lakeingest.apply.window.window import Bounds, PipelineLog, Window
from lakeingest.decode.wire import WireFormat
from lakeingest.envelope.change import FAMILIES
from lakeingest.ledger.publication import Frontier
from lakeingest.plan.end_positions import position_without_offset
from lakeingest.plan.spec import PipelineSpec
from lakeingest.transaction.cut import Cut, End


def cut_whole_transactions(
    log: PipelineLog, ranges: WindowRanges, frontier: Frontier, bounds: Bounds
) -> Window | Replan | Resnapshot:
    """Read one window and cut it; return how to read it again where it needs another reading.

    Args:
        log: The log.
        ranges: What to read of it.
        frontier: Up to where everything is applied.
        bounds: Bounds of batches.

    Raises:
        DataError: See ``gather`` and ``decide``.
    """
    gathered = gather(log, ranges, frontier, bounds)
    if isinstance(gathered, Replan):
        return gathered
    decision = decide(gathered.facts, frontier, bounds)
    if isinstance(decision, Resnapshot):
        return decision
    if decision.incomplete is not None and not decision.cuts:
        again = ends_again(log, ranges, gathered.frames)
        if again:
            return Replan(gathered.epochs, again)
    window = _window(gathered, decision, frontier, log.spec)
    # Without a transaction, no place lies above what was released: the first one will have it.
    if decision.cuts or decision.snapshot or not frontier.end_position:
        return window
    contents = gathered.facts.contents
    if not (contents.redelivered() or contents.has_snapshot()):
        return window
    # This batch has no END. It has every row below the frontier.
    redelivery = Cut(frontier.end_offset + 1, frontier.end_offset, gathered.frames.below, 0, 0)
    with_batch = partial(
        _with_cuts, window, (redelivery,), frames=gathered.frames, format_=log.spec.format
    )
    return replace(window, redelivered=with_batch, ends=())


def _window(gathered: Gathered, release: Release, frontier: Frontier, spec: PipelineSpec) -> Window:
    frames, facts, format_ = gathered.frames, gathered.facts, spec.format
    is_known = has_likely_cuts(release.cuts, gathered.likely)
    if not (release.cuts or release.snapshot):
        pending_stats: Callable[[], Sequence[BatchStats]] = tuple
    elif is_known and not facts.attempts.superseded:
        pending_stats = partial(tuple, gathered.likely_stats)
    else:
        # Rows of attempts that were left out may be counted in the likely statistics.
        pending_stats = frames.begin_stats(release.cuts, format_, snapshot=release.snapshot)
    incomplete = release.incomplete
    released = (end for end in facts.ends if end.position <= frontier.end_position)
    return Window(
        ranges=facts.ranges,
        contents=facts.contents,
        changes=frames.changes,
        boundaries=frames.boundaries,
        snapshot=release.snapshot,
        frontier_position=frames.below,
        cuts=release.cuts,
        pending_stats=pending_stats,
        incomplete=with_end_record(incomplete, frames.ended) if incomplete else None,
        waiting=release.waiting,
        again=tuple(position_without_offset(end.position) for end in released),
        epochs=gathered.epochs,
        ends_read_to=release.ends_read_to,
        alone_since=release.alone_since,
        unreadable=facts.unreadable,
        awaited=release.awaited,
        in_the_way=release.in_the_way,
        ends=release.ends,
        unplaced=_unplaced(facts, frontier, spec),
        recut=partial(_with_cuts, frames=frames, format_=format_),
        in_part=facts.in_part,
    )


def _unplaced(facts: WindowFacts, frontier: Frontier, spec: PipelineSpec) -> End | None:
    if not FAMILIES[spec.connector].unplaced_first:
        return None
    # The frontier's position shows no rows: empty transactions move it, too.
    offset = facts.contents.unplaced_end(applied=frontier.committed_ms > 0)
    return next((end for end in facts.ends if end.offset == offset), None)


def _with_cuts(
    window: Window, cuts: tuple[Cut, ...], frames: WindowFrames, format_: WireFormat
) -> Window:
    stats = frames.begin_stats(cuts, format_, snapshot=window.snapshot)
    return replace(window, cuts=cuts, pending_stats=stats)
