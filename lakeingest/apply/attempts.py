"""How often a run tries again what failed, and when it gives up: the one place that decides.

A run of an hour that ends because a broker restarted or somebody ran OPTIMIZE starts a new JVM,
claims the lake and reads its window again; within the run only the last costs anything. What is
tried again is a whole window, from the lake's state as it is then: the same way as after a crash,
so there is no second one to be wrong.

Tried again is what another moment may change: conflicts with maintenance, throttling, locks, lost
executors (``TransientError``), and services that are away (``UnavailableError``). Not so another
driver (``FencedError``): two that fence each other would never end. Nor data, settings, rights.
What was never reached is not waited for, either: a first run whose broker or topic is misspelt says
so at once.

Rejected: to try again each query by itself. Spark does that with tasks, and above it a query is
part of a plan that was made for a state of the lake and of the log.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from lakeingest.errors import FencedError, TransientError, UnavailableError

_LOG = logging.getLogger(__name__)

PAUSES_SECONDS = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Pauses before the second attempt and each later one: half a minute, in which a broker restarts.

The clients wait besides: the driver's for the patience of ``client_options``, Spark's tasks for
their time-outs, S3's with pauses of its own.
"""


class Attempts:
    """Counts the failures of a run since something last succeeded.

    Attributes:
        failures: How many there were.
    """

    def __init__(
        self,
        understand: Callable[[Exception], Exception],
        warn: Callable[[str], None],
        *,
        reached: bool,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Begin.

        Args:
            understand: Gives what a failure means, itself where it is a defect.
            warn: Told of each failure that is tried again.
            reached: Whether lake and source have answered a run before this one.
            sleep: Waits.
        """
        self.failures = 0
        self._understand = understand
        self._warn = warn
        self._reached = reached
        self._sleep = sleep

    def succeeded(self) -> None:
        """Take note of a window that was read and, if it held batches, published."""
        self.failures = 0
        self._reached = True

    def after(self, error: Exception) -> Exception | None:
        """Wait, and return None where the window is to be tried again; else what ends the run.

        Args:
            error: What a window raised.
        """
        if _was_stopped(error):
            return error
        failure = self._understand(error)
        if not self._may_pass(failure) or self.failures >= len(PAUSES_SECONDS):
            return failure
        pause = PAUSES_SECONDS[self.failures]
        self.failures += 1
        _LOG.warning("%s Trying again in %.0f s.", failure, pause)
        self._warn(f"Tried again after: {failure}")
        self._sleep(pause)
        return None

    def _may_pass(self, failure: Exception) -> bool:
        if isinstance(failure, UnavailableError):
            return self._reached
        return isinstance(failure, TransientError) and not isinstance(failure, FencedError)


def _was_stopped(error: BaseException) -> bool:
    """Return whether Ctrl-C stands behind an error: stopping kills Spark's jobs."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, KeyboardInterrupt):
            return True
        seen = seen.__cause__ or seen.__context__
    return False
