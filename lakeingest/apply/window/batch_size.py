"""Choose how many events a batch aims at, where ``lakeingest.batch.max.events=auto``.

A batch costs a fixed part, its commits, and a part per event. Small batches of a backlog pay the
fixed part again and again; a large batch is published late. So a run aims at batches that take some
seconds, by the pace of its last one. Where no backlog waits, a window holds what has arrived, and
its batch is smaller than the aim: nothing is ever waited for.

Rejected: a controller of the backlog's length, as in Spark Streaming. It needs three constants that
nobody can choose, and a run has no deadline for its backlog.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from lakeingest.apply.window.continuity import log_rules
from lakeingest.apply.window.window import Bounds
from lakeingest.config.model import PipelineConfig
from lakeingest.engine.delta.files import available

MOST_VERSIONS = 1_000
"""Most versions of a table that a batch makes at once, where each transaction becomes one.

With 1,000, a backlog was written a quarter faster than with 500 (two cores, measured); what a batch
costs is then a small part of what its versions cost.
"""

FIRST_EVENTS = 10_000
"""Events of the first batch, before any pace is known."""

SECONDS = 10.0
"""What a batch of a backlog may take, from its first commit until it can be published."""

_LEAST_EVENTS = 1_000
_LARGEST_STEP = 4.0

_BATCHES_PER_WINDOW = 4
"""The size of a window's batches is fixed when it is read, and the next window is read ahead."""


def bounds_of(spark: SparkSession, config: PipelineConfig, events: int) -> Bounds:
    """Return the bounds of a run's windows and first batches.

    Args:
        spark: Session of the run.
        config: The pipeline.
        events: Events of a batch.
    """
    return Bounds(
        events,
        _most_transactions(config, divides=config.divides_batches and available(spark)),
        each=config.commit_mode == "per-transaction",
        final=config.source.is_final,
        snapshot_again=config.source.replaces_tables,
        delay_seconds=config.source.boundary_delay_seconds,
        log=log_rules(config),
    )


def _most_transactions(config: PipelineConfig, *, divides: bool) -> int | None:
    """Return the most transactions of a batch; None: no bound.

    Args:
        config: The pipeline.
        divides: Whether tables can get versions of several transactions at once.
    """
    bound = config.commit_max_transactions
    if config.commit_mode == "grouped":
        return bound
    if not divides:
        # No batch can be divided.
        return 1
    return min(bound or MOST_VERSIONS, MOST_VERSIONS)


@dataclass(frozen=True)
class BatchSize:
    """How many events the next batches aim at.

    Attributes:
        events: Number of events.
        largest_window: ``lakeingest.window.max.records``.
        adapts: Whether the size is automatic.
    """

    events: int
    largest_window: int
    adapts: bool

    @staticmethod
    def of(fixed: int | None, largest_window: int) -> BatchSize:
        """Return the first size.

        Args:
            fixed: ``lakeingest.batch.max.events``; None: automatic.
            largest_window: ``lakeingest.window.max.records``.
        """
        events = min(FIRST_EVENTS, largest_window) if fixed is None else fixed
        return BatchSize(events, largest_window, adapts=fixed is None)

    @property
    def window(self) -> int:
        """Records that a window aims at."""
        if not self.adapts:
            return self.largest_window
        return min(_BATCHES_PER_WINDOW * self.events, self.largest_window)

    def after(self, events: int, seconds: float) -> BatchSize:
        """Return the size after a batch.

        Args:
            events: Its events. A batch that is half empty shows no backlog, and its pace is that of
                its commits: so it says nothing, unless it took too long.
            seconds: See ``BatchSummary``.
        """
        is_full = 2 * events >= self.events
        if not (self.adapts and (is_full or seconds > SECONDS)):
            return self
        at_this_pace = events * SECONDS / max(seconds, 0.001)
        step = min(max(at_this_pace / self.events, 1 / _LARGEST_STEP), _LARGEST_STEP)
        aim = max(int(self.events * step), _LEAST_EVENTS)
        return replace(self, events=min(aim, self.largest_window))
