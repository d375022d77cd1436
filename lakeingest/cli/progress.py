"""Show the progress of a run on stderr.

On a terminal one line changes. Elsewhere (a scheduler's log) each batch writes one line, because an
animation is useless in a log. There is no percentage: only reading the events shows how many of
them are in whole transactions.
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
    """Show progress, and yield the function to call after each batch.

    Args:
        doing: The activity before the first batch, such as ``starting Spark``.
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
