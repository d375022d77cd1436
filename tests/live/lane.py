"""One partition on its way through the relay: what was read, what is due when, what arrived."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field

from confluent_kafka import Message

__all__ = ["Lag", "Lane"]

_CHANGE_SECONDS = (0.3, 3.0)
"""How long a partition keeps its lag."""


class Lag:
    """The changing delay of one partition; a record is never due before the one ahead of it."""

    def __init__(self, seed: str, bounds: tuple[float, float]) -> None:
        self._choose = random.Random(seed)
        self._bounds = bounds
        self._lag = self._until = self._last = 0.0

    def due(self, now: float) -> float:
        """Return when a record that was read ``now`` is to be sent; the bound holds for all."""
        if now >= self._until:
            self._lag = self._choose.uniform(*self._bounds)
            self._until = now + self._choose.uniform(*_CHANGE_SECONDS)
        self._last = max(self._last, now + self._lag)
        return self._last


@dataclass
class Lane:
    """One partition at the source and what became of it.

    Attributes:
        topic: At the source.
        partition: At the source and in the mirror.
        mirror: The topic in the mirror.
        lag: Its delay.
        next: Offset behind the last record read.
        confirmed: Last offset that the broker confirmed in this pass.
        highest: Last offset that it confirmed in any pass.
        passes: How often it was started again.
        waiting: Records read, each with the time it is due.
    """

    topic: str
    partition: int
    mirror: str
    lag: Lag
    next: int = 0
    confirmed: int = -1
    highest: int = -1
    passes: int = 0
    waiting: deque[tuple[float, Message]] = field(default_factory=deque)

    def go_on_at(self, offset: int) -> None:
        """Read again from ``offset``, forget what waits."""
        self.next = offset
        self.waiting.clear()
