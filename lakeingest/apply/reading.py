"""Read windows, the next one while the one before it is being written.

Where the next window begins is known as soon as this one is cut into batches (``frontier.py``), and
reading writes nothing, so a run that catches up need not choose between reading and writing.

What was read ahead is used only if the lake stands where it was expected to stand. Rejected: slices
of one large window, decoded one after another; transactions reach across partitions, so a slice can
only be told to be complete by looking at all of them. Rejected, too: a small first window, so that
writing begins early; what a second window costs by itself is more than the idle cores it fills
(15 % of the processor time of 200,000 events, measured).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql import Column

from lakeingest.apply.frontier import frontier_after
from lakeingest.apply.reach import GROWTH
from lakeingest.apply.schemas import Schemas
from lakeingest.apply.settle import read_window
from lakeingest.apply.side_by_side import begun
from lakeingest.apply.whole_transactions import MAX_BATCHES
from lakeingest.apply.window import Bounds, Window
from lakeingest.ledger.publication import Frontier
from lakeingest.plan.spec import PipelineSpec
from lakeingest.source.contract import Source

WINDOW_RECORDS = 250_000
"""Records that a window aims at when batches are smaller: decoding is shared by its batches."""


@dataclass(frozen=True)
class _Ahead:
    """A window that is being read, and where it begins."""

    frontier: Frontier
    answer: Callable[[], Window | None]


class WindowReader:
    """Reads the windows of a run, one after another."""

    def __init__(
        self,
        source: Source,
        transaction_topic: str | None,
        spec: PipelineSpec,
        counted: Column,
        schemas: Schemas,
        *,
        batch_events: int,
        batch_transactions: int | None,
        final: bool,
        snapshot_again: bool = False,
    ) -> None:
        """Bind to a source; see ``read_window`` and ``Bounds`` for the rest."""
        self._source = source
        self._transaction_topic = transaction_topic
        self._spec = spec
        self._counted = counted
        self._schemas = schemas
        self._batch_events = batch_events
        self._batch_transactions = batch_transactions
        self._final = final
        self._snapshot_again = snapshot_again
        self._least = 0
        self._ahead: _Ahead | None = None

    def read(self, frontier: Frontier, through: int | None) -> Window | None:
        """Return the window at ``frontier``; null when there is not one new record.

        Args:
            frontier: Up to where everything is applied.
            through: See ``Bounds``.

        Raises:
            LakeingestError: The log cannot be read; also what reading ahead has met.
        """
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead.frontier == frontier and through is None:
            return ahead.answer()
        return self._read(frontier, through)

    def begin_next(self, window: Window, batches: Sequence[int], frontier: Frontier) -> None:
        """Begin to read what follows ``batches`` of ``window``, if something is known to follow.

        Args:
            window: The window that is about to be written.
            batches: Its batches, all of them.
            frontier: The frontier that it was read from.
        """
        self._least = 0
        if window.reach.whole and len(window.cuts) < MAX_BATCHES:
            return
        expected = frontier_after(window, batches[-1], frontier)
        self._ahead = _Ahead(expected, begun(partial(self._read, expected, None)))

    def enlarge(self, window: Window) -> None:
        """Take note that ``window`` completes nothing: the next reading must reach farther."""
        self._least = window.reach.asked * GROWTH

    def _read(self, frontier: Frontier, through: int | None) -> Window | None:
        # An event on its own has no batch but its window's.
        least = self._batch_events if self._transaction_topic is None else WINDOW_RECORDS
        bounds = Bounds(
            max(least, self._batch_events, self._least),
            self._batch_events,
            self._batch_transactions,
            through,
            self._final,
            self._snapshot_again,
        )
        return read_window(
            self._source,
            self._transaction_topic,
            frontier,
            self._spec,
            self._counted,
            bounds,
            self._schemas,
        )
