"""Compute the frontier after a batch of a window; it is known as soon as the window is cut.

So a run can read the next window while it writes this one (``prefetch.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lakeingest.apply.batch_stats import first_pending
from lakeingest.apply.window.window import Window
from lakeingest.frame_schemas import Kind
from lakeingest.ledger.publication import Frontier
from lakeingest.plan.batches import SNAPSHOT_BATCH
from lakeingest.transaction.cut import End
from lakeingest.transaction.epochs import epochs_up_to
from lakeingest.transaction.unreadable import UNREADABLE


def frontier_after(window: Window, index: int, old: Frontier) -> Frontier:
    """Return the frontier of the publication of batch ``index`` of ``window``.

    Args:
        window: The batch's window.
        index: Index of the batch in the window; the batches before it are published by then.
        old: The frontier that the window was read from, or the frontier after any batch before.
    """
    old = old.with_topic_ids(window.ranges.topic_ids)
    offsets = window.ranges.behind(old)
    for where, offset in first_pending(window.batch_stats, index).items():
        offsets[where.topic][where.partition] = offset
    for where, bad in window.unreadable.items():
        parts = offsets.get(where.topic, {})
        # A partition that begins with such a record was never read, and stays unread.
        if where.partition in parts:
            parts[where.partition] = min(bad.offset, parts[where.partition])
    if window.whole and window.waiting:
        # Even one that a later record replaces may be the row that a transaction waits for.
        for portion in window.contents.of(*UNREADABLE):
            parts, number = offsets[portion.where.topic], portion.where.partition
            parts[number] = min(portion.first_offset, parts[number])
    if not window.whole:
        return _after_events(window, offsets, old)
    if index == SNAPSHOT_BATCH:
        attempt = window.contents.newest_attempt()
        others = window.contents.attempts() - {attempt}
        earlier = sorted(((one.run, one.place) for one in others), key=lambda one: one[1])
        return replace(
            old,
            snapshot_run=attempt.run,
            snapshot_place=attempt.place,
            earlier_snapshots=tuple(earlier),
            offsets=offsets,
            read_offset=max(old.read_offset, window.ranges.ends_head),
            streaming=True,
        )
    batches = range(SNAPSHOT_BATCH + 1, index + 1)
    last = window.cuts[index - 1].last_offset
    # A transaction that waits needs its BEGIN again.
    read_to = window.ends_read_to if index == len(window.cuts) else None
    committed = max((s.source_ms for s in window.batch_stats if s.batch in batches), default=0)
    return replace(
        old,
        end_offset=last,
        read_offset=max(old.read_offset, last + 1 if read_to is None else read_to),
        end_position=max(old.end_position, *(cut.position for cut in window.cuts[:index])),
        committed_ms=max(old.committed_ms, committed),
        offsets=offsets,
        streaming=True,
        epochs=epochs_up_to(window.epochs, last),
    )


def frontiers_up_to(
    window: Window, index: int, ends: Sequence[End], old: Frontier
) -> list[Frontier]:
    """Return the frontier after each transaction of a batch that has several publications.

    Only the last one is where a run goes on: all are published at once. The others say how far the
    lake is, and no offsets of records.

    Args:
        window: See ``frontier_after``.
        index: See ``frontier_after``.
        ends: The batch's transactions; fewer than two: it has one publication.
        old: See ``frontier_after``.
    """
    last = frontier_after(window, index, old)
    earlier = (
        replace(
            old,
            end_offset=end.offset,
            end_position=max(old.end_position, end.position),
            committed_ms=max(old.committed_ms, end.committed_ms),
            epochs=epochs_up_to(window.epochs, end.offset),
        )
        for end in ends[:-1]
    )
    return [*earlier, last]


def _after_events(
    window: Window, offsets: Mapping[str, Mapping[int, int]], old: Frontier
) -> Frontier:
    """Return the frontier behind the one batch of a window without transactions.

    Snapshot rows do not count as commits: a later row of the same snapshot is no new snapshot.
    """
    streamed = tuple(window.contents.of(Kind.ROW, Kind.TRUNCATE))
    committed = max((portion.source_ms for portion in streamed), default=0)
    attempt = window.contents.newest_attempt()
    return replace(
        old,
        snapshot_run=attempt.run or old.snapshot_run,
        snapshot_place=attempt.place or old.snapshot_place,
        end_offset=window.cuts[0].last_offset,
        committed_ms=max(old.committed_ms, committed),
        offsets=offsets,
        streaming=old.streaming or bool(streamed),
        epochs=window.epochs,
    )
