"""Publish progress alone: how far the log was read where it held nothing to publish.

A publication records how far the log was read. Behind that point there may be records that belong
to no table: markers of Kafka's own transactions, messages of other writers, null records of
deletes. To skip them again costs little, until there are many of them, or until retention removes
them. Removed records cannot be told from lost changes, and the next run would stop. So progress
alone is published, but rarely: behind so many records, or so long after the newest publication. An
idle pipeline of a hundred tables writes nothing; a log that goes on for weeks without changes costs
four entries a day.

A continuous run skips what it has read because it remembers the window (``prefetch.py``), and
writes nothing for that.

MariaDB's DDL leaves a BEGIN without END, which is over only at the next BEGIN. Until then the topic
is read again from it, and retention may remove it first. So progress passes a BEGIN that has stayed
without END and row for as long. No row of it is under way then, so a later END counts its rows as
if the BEGIN had been read.

Rejected: an entry per window (a run each minute would write 43,200 a month, without content).
Rejected: to watch for retention. A broker does not announce it, and removes a whole segment at
once, even the newest one.

Rows of released transactions come again in the log when a connector was killed. Rows that no batch
has applied look the same: a retired table that was taken up again has them, and so has a topic that
was not read for a while. So they are never skipped. Where progress is due, a batch applies them
(``Window.redelivered``); a table that already has them does not change. A table that no publication
has yet needs all of them at once, or it would stand at an older commit than the others.
"""

from __future__ import annotations

from dataclasses import replace

from lakeingest.apply.next_publication import next_publication
from lakeingest.apply.window.window import Window
from lakeingest.frame_schemas import Kind
from lakeingest.ledger.publication import Frontier, Publication

PROGRESS_RECORDS = 10_000
"""Number of offsets after which progress alone is published."""

PROGRESS_SECONDS = 6 * 3600
"""Age of the newest publication from which progress alone is published."""

_WAITING = (Kind.ROW, Kind.SNAPSHOT, Kind.TRUNCATE)


def frontier_behind(window: Window, old: Frontier, now_ms: int) -> Frontier:
    """Return the frontier behind a window that was read and gave no batch.

    Args:
        window: Read from ``old``.
        old: The frontier before; before the first publication, and while transactions wait, it
            stays.
        now_ms: The driver's clock (milliseconds).
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
    read_to, transactions = window.ends_read_to, window.ranges.transactions
    if transactions and 0 < window.alone_since < now_ms - PROGRESS_SECONDS * 1000:
        read_to = transactions.end
    old = old.with_topic_ids(window.ranges.topic_ids)
    return replace(
        old, offsets=offsets, read_offset=old.read_offset if read_to is None else read_to
    )


def fills_new_table(window: Window, head: Publication) -> bool:
    """Return whether a batch of a window's redelivered rows would be the first of a table.

    Rows of a snapshot alone fill a table that is loaded anew, whose snapshot is over. Those of
    another table wait for a transaction.

    Args:
        window: A window that gave no batch.
        head: The newest publication.
    """
    released = window.contents.redelivered()
    of_snapshot = {portion.collection for portion in window.contents.of(Kind.SNAPSHOT)}
    new = (released - head.tables.keys()) | ((released | of_snapshot) & head.reloads.keys())
    return window.redelivered is not None and bool(new)


def is_due(head: Publication, behind: Frontier, now_ms: int) -> bool:
    """Return whether progress up to ``behind`` is worth a publication.

    Args:
        head: The newest publication.
        behind: Its frontier, or one behind it.
        now_ms: The driver's clock (milliseconds).
    """
    records = _records_between(head.frontier, behind)
    is_old = now_ms - head.at_ms > PROGRESS_SECONDS * 1000
    return records >= PROGRESS_RECORDS or (records > 0 and is_old)


def progress_alone(head: Publication, behind: Frontier, run: str) -> Publication:
    """Return the publication of progress: it changes no table.

    Args:
        head: The newest publication, whose writer is this run.
        behind: See ``frontier_behind``.
        run: Identifier of the run.
    """
    return replace(next_publication(head, run), frontier=behind)


def _records_between(old: Frontier, new: Frontier) -> int:
    """Count the offsets between two frontiers; of a new partition all offsets count.

    Those of a topic that was made again may be lower than before: they count as none.
    """
    data = sum(
        max(0, offset - (old.low(topic, partition) or 0))
        for topic, parts in new.offsets.items()
        for partition, offset in parts.items()
    )
    return data + (new.low_end or 0) - (old.low_end or 0)
