"""Do work beside a run that nobody waits for, one piece after another.

A checkpoint of a Delta log reads and writes what a batch does not need, and the next batch begins
meanwhile. What fails is logged: it is help and no condition. A run waits at its end, because the
session may end with it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

_LOG = logging.getLogger(__name__)


class InTurn:
    """Pieces of work, done in the order in which they are given."""

    def __init__(self, name: str) -> None:
        """Begin without work; the thread is made with the first piece.

        Args:
            name: What a piece is, for the log.
        """
        self._name = name
        self._pool = ThreadPoolExecutor(1)
        self._newest: Future[None] | None = None

    def begin(self, piece: Callable[[], None]) -> None:
        """Begin a piece of work after those before it."""
        self._newest = self._pool.submit(self._done, piece)

    def wait(self) -> None:
        """Wait until all pieces are done."""
        if self._newest is not None:
            self._newest.result()

    def _done(self, piece: Callable[[], None]) -> None:
        try:
            piece()
        except Exception as error:  # noqa: BLE001 - nobody waits for it
            first_line = str(error).strip().partition("\n")[0]
            _LOG.warning("%s failed: %s %s", self._name, type(error).__name__, first_line)
