"""Progress where there is nothing to publish: how far the log was read, and that it held nothing.

A publication says how far the log was read. Behind the last one there may be records that no table
is made of: markers of Kafka's own transactions, messages of nobody's, deletes' null records. They
cost little to pass over again, until there are many of them, or until retention removes them: what
is gone cannot be told from changes that were lost, and the next run would stop. So progress alone
is published, but rarely: behind so many records, or so long after the newest publication. An idle
pipeline of a hundred tables writes nothing; what goes on for weeks costs four entries a day.

A continuous run passes over what it has looked at because it remembers the window
(``prefetch.py``); nothing is written for that.

Rejected: an entry per window (a run each minute would write 43,200 a month, to say nothing); and to
look whether retention comes near, which a broker does not announce: it removes a whole segment at
once, also the newest one.

Rows of transactions that were released before are in the log again when a connector was killed.
Rows that no batch has applied look the same: a retired table that was taken up again has them, and
so has a topic that was not read for a while. So they are never passed over. Where progress is due,
a batch applies them (``Window.redelivered``); to a table that has them it changes nothing.
"""

from __future__ import annotations

import time
from dataclasses import replace

from lakeingest.apply.window.window import Window
from lakeingest.frame_schemas import Kind
from lakeingest.ledger.publication import Frontier, Publication
from lakeingest.sink.contract import token

PROGRESS_RECORDS = 10_000
"""Offsets behind which progress alone is published."""

PROGRESS_SECONDS = 6 * 3600
"""Age of the newest publication from which progress alone is published."""

_WAITING = (Kind.ROW, Kind.SNAPSHOT, Kind.TRUNCATE)


def frontier_behind(window: Window, old: Frontier) -> Frontier:
    """Return the frontier behind what a window without a batch has read in vain.

    Args:
        window: Read from ``old``.
        old: A frontier; before the first publication, and while transactions wait, it stays.
    """
    if not old.streaming or window.waiting or window.cut_over is not None or not window.whole:
        return old
    offsets = window.ranges.behind(old)
    for portion in window.contents.of(*_WAITING):
        parts, number = offsets[portion.where.topic], portion.where.partition
        if portion.first_new is not None:
            parts[number] = min(parts[number], portion.first_new)
    for where, bad in window.unreadable.items():
        parts = offsets[where.topic]
        parts[where.partition] = min(parts[where.partition], bad.offset)
    read = window.ends_read_to
    old = old.with_topic_ids(window.ranges.topic_ids)
    return replace(old, offsets=offsets, read_offset=old.read_offset if read is None else read)


def is_due(head: Publication, behind: Frontier, now_ms: int) -> bool:
    """Return whether progress up to ``behind`` is worth a publication.

    Args:
        head: The newest publication.
        behind: Its frontier, or one behind it.
        now_ms: The driver's clock (milliseconds).
    """
    passed = _records_between(head.frontier, behind)
    aged = now_ms - head.at_ms > PROGRESS_SECONDS * 1000
    return passed >= PROGRESS_RECORDS or (passed > 0 and aged)


def clock_ms() -> int:
    """Return the driver's clock (milliseconds)."""
    return int(time.time() * 1000)


def progress_alone(head: Publication, behind: Frontier, run: str) -> Publication:
    """Return the publication of progress: no table changes in it.

    Args:
        head: The newest publication, whose writer is this run.
        behind: See ``frontier_behind``.
        run: Identifier of the run.
    """
    batch = head.batch + 1
    return replace(
        head,
        batch=batch,
        token=token(head.writer, batch),
        run=run,
        transactions=0,
        events=0,
        opened=(),
        frontier=behind,
        schemas={},
        at_ms=clock_ms(),
    )


def _records_between(old: Frontier, new: Frontier) -> int:
    """Count the offsets between two frontiers; a partition that was not known counts whole."""
    data = sum(
        offset - (old.low(topic, partition) or 0)
        for topic, parts in new.offsets.items()
        for partition, offset in parts.items()
    )
    return data + (new.low_end or 0) - (old.low_end or 0)
