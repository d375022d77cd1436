"""Decide whether a run retries a failed window, and when it gives up. The only place that decides.

A window of a long run may fail because a broker restarted or somebody ran OPTIMIZE. To end the run
costs a new JVM, a new claim of the lake and a second reading of the window. A retry within the run
costs the second reading only. A retry repeats a whole window, from the lake's state at that moment.
It takes the same way as a run after a crash, so no second way can be wrong.

A failure is retried if it may pass with time: conflicts with maintenance, throttling, locks, lost
executors (``TransientError``), and unreachable services (``UnavailableError``). Another driver
(``FencedError``) is no reason to retry: two drivers that fence each other would never end. Errors
of data, settings and access rights are not retried either. A service that never answered is not
retried: a first run whose broker or topic is misspelt fails at once.

Rejected: to retry each query by itself. Spark already retries tasks. Above a task, a query is part
of a plan for one state of the lake and of the log.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from lakeingest.errors import FencedError, TransientError, UnavailableError, was_interrupted

PAUSES_SECONDS = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Pauses before the second attempt and each later one. Half a minute in all: a broker restarts.

The clients wait on top of it: the driver's client for the time-outs of ``client_options``, Spark's
tasks for theirs, the S3 client with its own pauses.
"""


class Attempts:
    """Count the failures of a run since its last success.

    Attributes:
        failures: Number of failures since the last success.
    """

    def __init__(
        self,
        understand: Callable[[Exception], Exception],
        warn: Callable[[str], None],
        *,
        reached: bool,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Begin without a failure.

        Args:
            understand: Returns the error that a failure means; the failure itself if it is a
                defect.
            warn: Receives the text of each failure that is retried.
            reached: Whether lake and source have answered an earlier run.
            sleep: Waits for a number of seconds.
        """
        self.failures = 0
        self._understand = understand
        self._warn = warn
        self._reached = reached
        self._sleep = sleep

    def succeeded(self) -> None:
        """Record that a batch was published, or that a window was read and had none."""
        self.failures = 0
        self._reached = True

    def after(self, error: Exception) -> Exception | None:
        """Wait and return None to retry the window; otherwise return the error that ends the run.

        Args:
            error: Exception that a window raised.
        """
        if was_interrupted(error):
            return error
        failure = self._understand(error)
        if not self._may_pass(failure) or self.failures >= len(PAUSES_SECONDS):
            return failure
        pause = PAUSES_SECONDS[self.failures]
        self.failures += 1
        self._warn(f"Tried again after: {failure}")
        self._sleep(pause)
        return None

    def _may_pass(self, failure: Exception) -> bool:
        if isinstance(failure, UnavailableError):
            return self._reached
        return isinstance(failure, TransientError) and not isinstance(failure, FencedError)
