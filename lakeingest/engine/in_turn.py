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


def as_help(name: str, piece: Callable[[], None]) -> None:
    """Do a piece of work that is help and no condition: log what fails.

    Args:
        name: What the piece is, for the log.
        piece: The work.
    """
    try:
        piece()
    except Exception as error:  # noqa: BLE001 - nothing depends on it
        # The second line of an error of the JVM names its cause, which may list thousands of files.
        reason = " ".join(str(error).split("\n")[:2])
        _LOG.warning("%s failed: %s %.300s", name, type(error).__name__, reason)


class InTurn:
    """Pieces of work, done in the order in which they are given."""

    def __init__(self, name: str) -> None:
        """Begin without work; the thread is made with the first piece.

        Args:
            name: What a piece is, for the log.
        """
        self._name = name
        self._pool = ThreadPoolExecutor(1)
        self._unfinished: set[str] = set()

    def begin(self, subject: str, piece: Callable[[], None]) -> None:
        """Begin a piece of work after those before it.

        Args:
            subject: What it is done to. A piece is left out while another one of the same subject
                is unfinished, so that they do not queue where they take longer than a batch.
            piece: The work.
        """
        if subject not in self._unfinished:
            self._unfinished.add(subject)
            self._pool.submit(self._do, subject, piece)

    def _do(self, subject: str, piece: Callable[[], None]) -> None:
        as_help(self._name, piece)
        self._unfinished.discard(subject)

    def finish(self) -> None:
        """Wait until all pieces are done; no other can begin."""
        self._pool.shutdown()
