"""Do work beside a run that nobody waits for, one piece after another.

A checkpoint of a Delta log reads and writes what a batch does not need, and the next batch begins
meanwhile. What fails is logged: it is help and no condition. A run that ends well waits for it,
because the session may end with the run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

_LOG = logging.getLogger(__name__)


def _nothing() -> None:
    """Do nothing."""


class InTurn:
    """Pieces of work, done in the order in which they are given."""

    def __init__(self, name: str) -> None:
        """Begin without work; the thread is made with the first piece.

        Args:
            name: What a piece is, for the log.
        """
        self._name = name
        self._pool = ThreadPoolExecutor(1)

    def begin(self, piece: Callable[[], None]) -> None:
        """Begin a piece of work after those before it."""
        self._pool.submit(self._done, piece)

    def wait(self) -> None:
        """Wait until the pieces are done that were begun before."""
        self._pool.submit(_nothing).result()

    def _done(self, piece: Callable[[], None]) -> None:
        try:
            piece()
        except Exception as error:  # noqa: BLE001 - nobody waits for it
            # The second line of an error of the JVM names its cause.
            reason = " ".join(str(error).split("\n")[:2])
            _LOG.warning("%s failed: %s %s", self._name, type(error).__name__, reason)
