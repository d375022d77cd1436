"""Where the next batch goes on once a batch of a window is published: known as soon as it is cut.

That makes it possible to read the next window while this one is being written (``reading.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lakeingest.apply.share import first_pending
from lakeingest.apply.window import Window
from lakeingest.ledger.publication import Frontier
from lakeingest.plan.window import SNAPSHOT_BATCH
from lakeingest.shape import Kind
from lakeingest.transaction.epochs import held_until


def frontier_after(window: Window, index: int, old: Frontier) -> Frontier:
    """Return the frontier that the publication of batch ``index`` of ``window`` has.

    Args:
        window: Where the batch is from.
        index: Its index in the window; those before it are published by then.
        old: The frontier that the window was read from, or that of any batch before.
    """
    offsets = {topic: dict(parts) for topic, parts in old.offsets.items()}
    for covered in window.reach.data:
        offsets.setdefault(covered.topic, {})[covered.partition] = covered.end
    for where, offset in first_pending(window.shares, index).items():
        offsets[where.topic][where.partition] = offset
    if not window.whole:
        return _after_events(window, offsets, old)
    if index == SNAPSHOT_BATCH:
        return replace(old, offsets=offsets, streaming=True)
    published = range(SNAPSHOT_BATCH + 1, index + 1)
    committed = max((s.source_ms for s in window.shares if s.batch in published), default=0)
    return replace(
        old,
        end_offset=window.cuts[index - 1].last_offset,
        end_position=max(old.end_position, *(cut.position for cut in window.cuts[:index])),
        committed_ms=max(old.committed_ms, committed),
        offsets=offsets,
        streaming=True,
        epochs=held_until(window.epochs, window.cuts[index - 1].last_offset),
    )


def _after_events(
    window: Window, offsets: Mapping[str, Mapping[int, int]], old: Frontier
) -> Frontier:
    """Return the frontier behind the one batch of a window without transactions.

    Rows of the snapshot tell no commit: a later one of the same snapshot is no new one.
    """
    streamed = tuple(window.contents.of(Kind.ROW, Kind.TRUNCATE))
    committed = max((portion.source_ms for portion in streamed), default=0)
    return replace(
        old,
        end_offset=window.cuts[0].last_offset,
        committed_ms=max(old.committed_ms, committed),
        offsets=offsets,
        streaming=old.streaming or bool(streamed),
        epochs=window.epochs,
    )
