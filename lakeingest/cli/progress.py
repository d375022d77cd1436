"""What a person sees while a run is under way, on stderr.

On a terminal one line that changes; elsewhere (a scheduler's log) one line per batch, because a
log that holds the frames of an animation is of use to nobody. There is no percentage: how many
events will be whole transactions is known only when they were looked at.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lakeingest.cli.output import message

if TYPE_CHECKING:
    from lakeingest.apply.summary import BatchSummary


@contextmanager
def progress(doing: str) -> Iterator[Callable[[BatchSummary], None]]:
    """Show that something is being done; gives the function to call after each batch.

    Args:
        doing: What is being done before the first batch, such as ``starting Spark``.
    """
    if not sys.stderr.isatty():
        yield lambda batch: message(_line(batch))
        return
    from rich.console import Console

    totals = {"batches": 0, "events": 0}
    with Console(stderr=True).status(doing) as status:

        def show(batch: BatchSummary) -> None:
            totals["batches"] += 1
            totals["events"] += batch.events
            status.update(
                f"{totals['batches']:,} batches, {totals['events']:,} events; last: {_line(batch)}"
            )

        yield show


def _line(batch: BatchSummary) -> str:
    tables = ", ".join(f"{name} {rows:,}" for name, rows in batch.tables.items()) or "none"
    return (
        f"batch {batch.batch} published: {batch.transactions:,} transactions, "
        f"{batch.events:,} events in {batch.seconds:.1f} s; rows: {tables}"
    )
