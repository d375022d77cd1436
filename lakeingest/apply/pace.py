"""Decide how long a continuous run waits between two windows.

``--min-sync-interval-seconds`` is Hudi Streamer's: from the start of one round to that of the next,
whether a backlog waits or not. So it bounds how many commits a day tables get. Without it a run
reads on at once, and looks again every second where nothing has come.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

IDLE_SECONDS = 1.0
"""Pause after a window that brought nothing, where no least time is set."""

_SHORT_SECONDS = 0.05


@dataclass(frozen=True)
class Pace:
    """The least time from the start of a window to that of the next one, in seconds; 0: none."""

    least_seconds: float = 0.0

    def wait(self, began: float, *, is_idle: bool) -> None:
        """Wait until the next window may begin.

        Args:
            began: When the last window began, by ``time.monotonic``.
            is_idle: Whether it brought nothing, so that to read again at once is of no use.
        """
        remaining = self.least_seconds - (time.monotonic() - began)
        pause = _SHORT_SECONDS if self.least_seconds else IDLE_SECONDS
        time.sleep(max(remaining, pause if is_idle else 0.0))
