"""Begin the publication that follows another one: progress, a new epoch, a retired table.

A batch makes its publication from what its tables became (``batch/writer.py``). Every other
publication changes no table, and differs from the one before in one thing only. So it begins here.
"""

from __future__ import annotations

import time
from dataclasses import replace

from lakeingest.commit_note import token
from lakeingest.ledger.publication import Publication


def next_publication(head: Publication, run: str) -> Publication:
    """Return the publication after ``head``, with the same tables and without a transaction.

    Args:
        head: The newest publication, whose writer is this run.
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
        schemas={},
        notes={},
        at_ms=clock_ms(),
    )


def clock_ms() -> int:
    """Return the driver's clock (milliseconds)."""
    return int(time.time() * 1000)
