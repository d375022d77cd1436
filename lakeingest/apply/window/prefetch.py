"""Read windows, the next one while the one before it is being written.

The start of the next window is known as soon as this one is cut into batches
(``next_frontier.py``), and reading writes nothing. So a run that catches up reads and writes at the
same time.

A window without a batch is kept until the log grows: a waiting run reads watermarks, and no record
again.

A window that was read ahead is used only if the lake stands where it was expected to stand.
Rejected: slices of one large window, decoded one after another. Transactions span several
partitions, so only a look at all slices shows that one of them is complete. Rejected, too: a small
first window, so that writing begins early. A second window costs more by itself than the idle cores
that it fills (15 % of the processor time of 200,000 events, measured).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from lakeingest.apply.parallel import start_in_background
from lakeingest.apply.window.decide import MAX_BATCHES
from lakeingest.apply.window.next_frontier import frontier_after
from lakeingest.apply.window.offset_ranges import (
    WindowRanges,
    ends_of_now,
    plan_window_ranges,
)
from lakeingest.apply.window.resolve import read_window
from lakeingest.apply.window.size import SAMPLED_FROM, Span
from lakeingest.apply.window.snapshot_extent import records_of_snapshot
from lakeingest.apply.window.window import Bounds, PipelineLog, Window
from lakeingest.ledger.publication import Frontier
from lakeingest.source.contract import TopicPartition


@dataclass(frozen=True)
class _Ahead:
    """A window that is being read, and the frontier at which it begins."""

    frontier: Frontier
    answer: Callable[[], _Reading | None]


@dataclass(frozen=True)
class _Reading:
    """A window, and the frontier, END and ranges by which it was read."""

    frontier: Frontier
    through: int | None
    ranges: WindowRanges
    window: Window


class WindowReader:
    """Read the windows of a run, one after another."""

    def __init__(
        self, log: PipelineLog, bounds: Bounds, records: int, octets: int, *, endless: bool = True
    ) -> None:
        """Bind to a log.

        Args:
            log: The log.
            bounds: Bounds of batches, and what the settings accept; ``through`` does not count.
            records: Records that a window aims at.
            octets: ``lakeingest.window.max.bytes``.
            endless: Whether to release also what is committed after the first reading.
        """
        self._log = log
        self._bounds = bounds
        self._records = records
        self._span = Span(records, octets)
        self._ahead: _Ahead | None = None
        self._newest: _Reading | None = None
        # A source that gets no more records ends by itself.
        is_endless = endless or bounds.final
        self._until: Mapping[TopicPartition, int] | None = {} if is_endless else None

    def read(self, frontier: Frontier, through: int | None) -> Window | None:
        """Return the window at ``frontier``; None when there is no new record.

        Where nothing was published and the log has not grown, it is the same object as before.

        Args:
            frontier: Up to where everything is applied.
            through: See ``Bounds``.

        Raises:
            LakeingestError: The log cannot be read, now or when the window was read ahead.
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
            window: The window to be written next.
            batches: All of its batches.
            frontier: The frontier at which it began.
        """
        self._newest = None
        self._span = self._span.afresh(())
        if window.ranges.whole and len(window.cuts) < MAX_BATCHES:
            return
        self._span = self._span.afresh(window.batch_stats)
        expected = frontier_after(window, batches[-1], frontier)
        self._ahead = _Ahead(expected, start_in_background(partial(self._read, expected, None)))

    def aim(self, events: int, records: int) -> None:
        """Aim at so many events per batch and records per window, from the next one that is read.

        Args:
            events: Events per batch.
            records: Records per window.
        """
        self._records = records
        self._bounds = replace(self._bounds, batch_events=events)

    def forget(self) -> None:
        """Forget the windows that were read: a batch of one failed."""
        self._ahead = self._newest = None

    def release_in_part(self, end_offset: int) -> None:
        """Release the transaction with this END, from the next window on, with what it has."""
        self._bounds = replace(self._bounds, in_part=self._bounds.in_part | {end_offset})
        self.forget()

    def enlarge(self, window: Window, through: int | None) -> None:
        """Enlarge the next window, because ``window`` completes nothing."""
        self._span = self._span.after_nothing(window, through)

    def _read(self, frontier: Frontier, through: int | None) -> _Reading | None:
        ranges = self._ranges(frontier)
        if ranges.nothing:
            return None
        newest = self._newest
        if newest and (newest.frontier, newest.through, newest.ranges) == (
            frontier,
            through,
            ranges,
        ):
            return newest
        self._newest = newest = None
        bounds = replace(self._bounds, through=through)
        window = read_window(self._log, frontier, bounds, ranges)
        return _Reading(frontier, through, ranges, window)

    def _ranges(self, frontier: Frontier) -> WindowRanges:
        source, topic, rules = self._log.source, self._log.transaction_topic, self._bounds.log
        batch = self._bounds.batch_events
        # Without transactions a batch is a window.
        records = max(batch, self._records) if self._log.spec.whole else batch
        # Here alone: whoever calls ``aim`` has another thread.
        self._span = replace(self._span, records=records)
        until = self._until = ends_of_now(source, topic) if self._until is None else self._until

        def plan() -> WindowRanges:
            limits = replace(self._span.limits, until=until)
            return plan_window_ranges(source, topic, frontier, self._span.aimed, limits, rules)

        ranges = plan()
        if self._span.sizes is None and ranges.records > SAMPLED_FROM:
            self._span = self._span.sampled(source, ranges)
            ranges = plan()
            if not frontier.streaming and self._log.spec.whole:
                further = records_of_snapshot(self._log, ranges, self._span.records)
                self._span = replace(self._span, further=further)
                ranges = plan()
        return ranges
