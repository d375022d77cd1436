"""Assign the ENDs of a window to epochs, and open new epochs.

The transaction topic has one partition, so the order of ENDs gives the order of domains. A run of
ENDs of another domain opens an epoch, unless an earlier epoch already holds all its transactions:
then a connector went back and sends them again (recorded: ``mariadb-kill-replay``, within a
domain). A domain may return; its higher numbers are then an epoch of their own.

An epoch in file order (``position/epochs.py``) is the last epoch of its server. If another server
takes over and the first one returns, the first one's new transactions look like redeliveries: they
are below the frontier and the ledger does not have them, which stops the run.

Plain Python over runs, one run per change of the domain. Rejected: a running decision per END in
Spark, which is sequential anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lakeingest.position.epochs import IN_FILE_ORDER, Epoch


@dataclass(frozen=True)
class Run:
    """Transactions of one domain that follow one another on the transaction topic.

    Attributes:
        domain: Domain of the transactions.
        lowest: Lowest of their numbers.
        highest: Highest of their numbers.
        end_offset: Offset of their first BEGIN or END.
    """

    domain: str
    lowest: int
    highest: int
    end_offset: int


def epochs_after(
    frontier_epochs: Sequence[Epoch], runs: Iterable[Run], base: int, applied: int
) -> tuple[Epoch, ...]:
    """Return the epochs that hold the ENDs of the frontier's epochs and of ``runs``.

    Args:
        frontier_epochs: Epochs up to the frontier, by number; the last one is open.
        runs: The runs of a window, in the order of offsets.
        base: Number of the first epoch if there is none yet.
        applied: Highest number applied in the newest of ``frontier_epochs``; 0: none.
    """
    epochs = list(frontier_epochs)
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
        highest_of_domain = [epoch.highest or 0 for epoch in epochs if epoch.domain == run.domain]
        first = max(highest_of_domain) + 1 if highest_of_domain else 0
        if run.highest < first:
            continue
        epochs[-1] = newest if newest.in_file_order else replace(newest, highest=highest)
        epochs.append(Epoch(newest.number + 1, run.domain, lowest=first, end_offset=run.end_offset))
        highest = run.highest
    return tuple(epochs)


def epochs_up_to(epochs: Sequence[Epoch], end_offset: int) -> tuple[Epoch, ...]:
    """Return the epochs that begin at or before an END; the last of them is open."""
    opened = [epoch for epoch in epochs if epoch.end_offset <= end_offset]
    return (*opened[:-1], replace(opened[-1], highest=None)) if opened else ()
