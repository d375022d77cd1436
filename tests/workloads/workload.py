"""What all workloads have in common, so that a soak can run any of them beside any other."""

from __future__ import annotations

from typing import Protocol

from tests.workloads.counts import Counts
from tests.workloads.crew import Crew, Job, Pace, Transaction
from tests.workloads.source import Source


class Workload(Protocol):
    """``create``, ``start``, and ``stop`` (when told) or ``finish`` (after a number)."""

    @property
    def captured(self) -> tuple[str, ...]:
        """Bare names of the tables that a connector is to capture."""

    @property
    def turns(self) -> int:
        """How many transactions were begun, about."""

    def create(self) -> None:
        """Create the tables and the rows that are there before the run."""

    def start(self) -> None:
        """Begin, on what ``create`` or an earlier run left."""

    def release(self) -> None:
        """Go on behind ``Pace.hold_at``: the connector's snapshot is over."""

    def stop(self) -> Counts:
        """Let the clients end their transactions, and return what was done."""

    def finish(self, seconds: float | None = None) -> Counts:
        """Wait until the number of transactions that was asked for is done."""

    def violations(self) -> list[str]:
        """Return which invariants do not hold now; they hold at every commit."""


class CrewWorkload(Job):
    """A workload whose clients are a crew of threads."""

    def __init__(self, source: Source, seed: int, pace: Pace) -> None:
        self._source = source
        self._crew = Crew(source, self, seed, pace)

    def start(self) -> None:
        """Begin, on what ``create`` or an earlier run left."""
        self._crew.start()

    def release(self) -> None:
        """Go on behind ``Pace.hold_at``: the connector's snapshot is over."""
        self._crew.release()

    def stop(self) -> Counts:
        """Let the clients end their transactions, and return what was done."""
        return self._crew.stop()

    def finish(self, seconds: float | None = None) -> Counts:
        """Wait until the number of transactions that was asked for is done."""
        return self._crew.finish(seconds)

    @property
    def turns(self) -> int:
        """How many transactions were begun."""
        return self._crew.turns

    @property
    def counts(self) -> Counts:
        """The account so far."""
        return self._crew.counts

    def committed(self, transaction: Transaction) -> None:
        """Take note of nothing."""
