"""Which epochs the ENDs of a window belong to, and where a new one is opened.

The transaction topic has one partition, so the order of ENDs tells which domain came after which. A
run of ENDs of another domain opens an epoch, unless it holds nothing but transactions that are in
one already: then a connector went back and sends them again (recorded: ``mariadb-kill-replay``
within a domain). Domains may return; their higher numbers are an epoch of their own then.

A server's epoch in file order (``position/epochs.py``) is its last one. If another server takes
over and the first one returns, its new transactions look like ones that come again: they lie below
the frontier and the ledger does not know them, which stops the run.

Plain Python over runs, of which there is one per seam: the rejected way, a running decision per END
in Spark, is sequential anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lakeingest.position.epochs import IN_FILE_ORDER, Epoch


@dataclass(frozen=True)
class Run:
    """Transactions of one domain that follow one another on the transaction topic.

    Attributes:
        domain: Theirs.
        lowest: Lowest of their numbers.
        highest: Highest of their numbers.
        end_offset: Offset of the first BEGIN or END.
    """

    domain: str
    lowest: int
    highest: int
    end_offset: int


def epochs_after(
    known: Sequence[Epoch], runs: Iterable[Run], base: int, applied: int
) -> tuple[Epoch, ...]:
    """Return the epochs that hold the ENDs of ``known`` and of ``runs``.

    Args:
        known: Epochs up to the frontier, by number; the last one is open.
        runs: What a window holds, in the order of offsets.
        base: Number of the first epoch where none is known.
        applied: Highest number applied in the newest known epoch; 0: none.
    """
    epochs = list(known)
    highest = applied
    for run in runs:
        if not epochs:
            epochs.append(Epoch(base, run.domain, end_offset=run.end_offset))
        newest = epochs[-1]
        binlog = f"{run.domain.removesuffix(IN_FILE_ORDER)}{IN_FILE_ORDER}"
        if any(epoch.domain == binlog for epoch in epochs):
            continue
        if run.domain == newest.domain:
            highest = max(highest, run.highest)
            continue
        ended = [epoch.highest or 0 for epoch in epochs if epoch.domain == run.domain]
        first = max(ended) + 1 if ended else 0
        if run.highest < first:
            continue
        epochs[-1] = newest if newest.in_file_order else replace(newest, highest=highest)
        epochs.append(Epoch(newest.number + 1, run.domain, lowest=first, end_offset=run.end_offset))
        highest = run.highest
    return tuple(epochs)


def held_until(epochs: Sequence[Epoch], end_offset: int) -> tuple[Epoch, ...]:
    """Return the epochs that hold up to an END, as they were known there."""
    opened = [epoch for epoch in epochs if epoch.end_offset <= end_offset]
    return (*opened[:-1], replace(opened[-1], highest=None)) if opened else ()
