"""Step 4 of the commit protocol: publish batches in order while the next one is written.

A publication is one append and leaves cores idle, so it runs in a thread of its own. The end of the
``with`` block waits for the last publication. A publication writes, so it must be complete before
the run reports anything, also when the next batch has failed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

from pyspark.sql import functions as F

from lakeingest.apply.failpoints import failpoint
from lakeingest.apply.summary import BatchSummary
from lakeingest.apply.window.window import Window
from lakeingest.ledger.delta import DeltaLedger
from lakeingest.ledger.publication import Publication
from lakeingest.plan.batches import SNAPSHOT_BATCH


class Publisher:
    """Publishes the batches of a window; a context manager."""

    def __init__(self, ledger: DeltaLedger, published: Callable[[BatchSummary], None]) -> None:
        """Bind to a ledger; ``published`` is called after each publication, in another thread."""
        self._ledger = ledger
        self._published = published
        self._pool = ThreadPoolExecutor(1)
        self._last: Future[None] | None = None

    def __enter__(self) -> Publisher:
        """Return the publisher itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Wait for the last publication."""
        self._pool.shutdown(wait=True)

    def begin(
        self,
        window: Window,
        index: int,
        publications: Sequence[Publication],
        summary: BatchSummary,
    ) -> None:
        """Start to publish batch ``index`` of ``window`` after the batch before it is published.

        Raises:
            FencedError: The publication before it met another driver; this one does not start.
        """
        self.wait()
        self._last = self._pool.submit(self._publish, window, index, publications, summary)

    def wait(self) -> None:
        """Wait until the publication that ``begin`` started is visible.

        Raises:
            FencedError: Another driver has claimed the ledger.
        """
        if self._last is not None:
            self._last.result()

    def _publish(
        self,
        window: Window,
        index: int,
        publications: Sequence[Publication],
        summary: BatchSummary,
    ) -> None:
        failpoint("4.before-publication")
        transactions = window.boundaries
        if index == SNAPSHOT_BATCH:
            transactions = transactions.limit(0)
        else:
            cut = window.cuts[index - 1]
            transactions = transactions.where(
                F.col("end_offset").between(cut.first_offset, cut.last_offset)
            )
        self._ledger.publish(publications, transactions, window.in_part)
        failpoint("4.after-publication")
        self._published(summary)
