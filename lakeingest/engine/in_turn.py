"""Do work beside a run that nobody waits for, one piece after another.

A checkpoint of a Delta log reads and writes what a batch does not need. The next batch begins
meanwhile. Python waits for pieces that are under way when the process ends.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor


class InTurn:
    """Pieces of work, done in the order in which they are given."""

    def __init__(self) -> None:
        """Begin without work; the thread is made with the first piece."""
        self._pool = ThreadPoolExecutor(1)
        self._pieces: list[Future[None]] = []

    def begin(self, piece: Callable[[], None]) -> None:
        """Begin a piece of work after those before it.

        Raises:
            Exception: The error of an earlier piece, which is over.
        """
        over = [work for work in self._pieces if work.done()]
        self._pieces = [work for work in self._pieces if not work.done()]
        self._pieces.append(self._pool.submit(piece))
        for work in over:
            work.result()
