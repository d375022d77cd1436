"""Read windows, the next one while the one before it is being written.

Where the next window begins is known as soon as this one is cut into batches
(``next_frontier.py``), and reading writes nothing, so a run that catches up need not choose between
reading and writing.

A window without a batch is kept until the log grows: a run that waits asks for watermarks, and
reads nothing again.

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

from lakeingest.apply.parallel import start_in_background
from lakeingest.apply.table.record_schemas import Schemas
from lakeingest.apply.window.continuity import LogRules
from lakeingest.apply.window.next_frontier import frontier_after
from lakeingest.apply.window.offset_ranges import WindowRanges, plan_window_ranges
from lakeingest.apply.window.resolve import read_window
from lakeingest.apply.window.size import SAMPLED_FROM, Span
from lakeingest.apply.window.whole_transactions import MAX_BATCHES
from lakeingest.apply.window.window import Bounds, Window
from lakeingest.ledger.publication import Frontier
from lakeingest.plan.spec import PipelineSpec
from lakeingest.source.contract import Source


@dataclass(frozen=True)
class _Ahead:
    """A window that is being read, and where it begins."""

    frontier: Frontier
    answer: Callable[[], _Reading | None]


@dataclass(frozen=True)
class _Reading:
    """A window, and what it was read by."""

    frontier: Frontier
    through: int | None
    ranges: WindowRanges
    window: Window


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
        window_records: int,
        window_bytes: int,
        final: bool,
        snapshot_again: bool = False,
        log: LogRules | None = None,
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
        self._log = log or LogRules()
        # An event on its own has no batch but its window's.
        least = 1 if transaction_topic is None else window_records
        self._span = Span(max(least, batch_events), window_bytes)
        self._ahead: _Ahead | None = None
        self._newest: _Reading | None = None

    def read(self, frontier: Frontier, through: int | None) -> Window | None:
        """Return the window at ``frontier``; None when there is not one new record.

        It is the same object as before where nothing was published and the log has not grown.

        Args:
            frontier: Up to where everything is applied.
            through: See ``Bounds``.

        Raises:
            LakeingestError: The log cannot be read; also what reading ahead has met.
        """
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead.frontier == frontier and through is None:
            self._newest = ahead.answer()
        else:
            self._newest = self._read(frontier, through)
        return self._newest.window if self._newest else None

    def begin_next(self, window: Window, batches: Sequence[int], frontier: Frontier) -> None:
        """Begin to read what follows ``batches`` of ``window``, if something is known to follow.

        Args:
            window: The window that is about to be written.
            batches: Its batches, all of them.
            frontier: The frontier that it was read from.
        """
        self._newest = None
        self._span = self._span.afresh(())
        if window.ranges.whole and len(window.cuts) < MAX_BATCHES:
            return
        self._span = self._span.afresh(window.batch_stats)
        expected = frontier_after(window, batches[-1], frontier)
        self._ahead = _Ahead(expected, start_in_background(partial(self._read, expected, None)))

    def forget(self) -> None:
        """Forget what was read: a batch of it failed."""
        self._ahead = self._newest = None

    def enlarge(self, window: Window, through: int | None) -> None:
        """Take note that ``window`` completes nothing: the next reading must reach farther."""
        self._span = self._span.after_nothing(window, through)

    def _read(self, frontier: Frontier, through: int | None) -> _Reading | None:
        bounds = Bounds(
            self._batch_events,
            self._batch_transactions,
            through,
            self._final,
            self._snapshot_again,
            self._log,
        )
        ranges = self._ranges(frontier)
        if ranges.nothing:
            return None
        known = self._newest
        if known and (known.frontier, known.through, known.ranges) == (frontier, through, ranges):
            return known
        self._newest = known = None
        window = read_window(
            self._source,
            self._transaction_topic,
            frontier,
            self._spec,
            self._counted,
            bounds,
            self._schemas,
            ranges,
        )
        return _Reading(frontier, through, ranges, window)

    def _ranges(self, frontier: Frontier) -> WindowRanges:
        known = partial(plan_window_ranges, self._source, self._transaction_topic, frontier)
        planned = partial(known, rules=self._log)
        ranges = planned(self._span.aimed, self._span.limits)
        if self._span.sizes is None and ranges.records > SAMPLED_FROM:
            self._span = self._span.sampled(self._source, ranges)
            ranges = planned(self._span.aimed, self._span.limits)
        return ranges
