"""A reader that looks at what is published while everything around it is killed.

What a publication shows is compared with the commits that the database itself knows of, by a log
that is read after the publication was seen: so its commit is always among them. While the database
is down its log cannot be read, and the comparison waits until it can.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from tests.live.run import LiveRun
from tests.oracles.live import LiveOracle
from tests.recordings.delta_rs import DeltaRsLake
from tests.recordings.known import uncounted
from tests.recordings.oracle import Totals
from tests.recordings.prefix import PrefixChecker

_PAUSE_SECONDS = 1.0


class LiveWatcher(threading.Thread):
    """Reads the newest publication over and over until it is told to stop.

    Attributes:
        checks: Snapshots that were read in full and compared.
        newest: Number of the newest publication seen; None before the first.
        shown: The commit that the newest compared snapshot shows at least; -1 before the first.
        postponed: Comparisons that had to wait for the database.
    """

    def __init__(self, run: LiveRun, oracle: LiveOracle, target: Path) -> None:
        super().__init__(name="watcher", daemon=True)
        self._run, self._oracle = run, oracle
        self._lake = DeltaRsLake(target, run.namespace)
        self._checker = PrefixChecker(ignored=uncounted(run.name, run.form))
        self._over = threading.Event()
        self._seen: list[tuple[int, Totals]] = []
        self._unreadable: list[str] = []
        self.checks = 0
        self.newest: int | None = None
        self.shown = -1
        self.postponed = 0

    @property
    def violations(self) -> list[str]:
        """Snapshots that show no commit of the source, went back, or could not be read."""
        return [*self._checker.violations, *self._unreadable]

    @property
    def commits(self) -> int:
        """Number of the last commit that the oracle has told of."""
        return self._checker.newest

    def run(self) -> None:
        while not self._over.is_set():
            try:
                self._hear()
                self._look()
                if self._seen and self._hear():
                    self._compare()
            except Exception as error:  # noqa: BLE001 - whatever stops a reader is a finding
                said = f"{type(error).__name__}: {str(error)[:500]}"
                self._unreadable.append(f"reader after {self.newest}: {said}")
            self._over.wait(_PAUSE_SECONDS)

    def stop(self) -> None:
        """End the thread after the look it is at."""
        self._over.set()
        self.join()

    def wait_until_shown(
        self, commit: int, seconds: float, going_on: Callable[[], bool] = lambda: True
    ) -> bool:
        """Return whether a snapshot that shows commit number ``commit`` was seen in time.

        Args:
            commit: The commit.
            seconds: How long to wait.
            going_on: Asked while waiting; there is no use in it when this is false.
        """
        deadline = time.monotonic() + seconds
        while self.shown < commit:
            if time.monotonic() > deadline or not self.is_alive() or not going_on():
                return False
            time.sleep(0.1)
        return True

    def _hear(self) -> bool:
        """Take over the commits since the last time; tells whether the database answered."""
        try:
            self._oracle.follow()
        except Exception as error:
            if not self._run.source.is_down(error):
                raise
            return False
        finally:
            self._checker.extend(self._oracle.states[self._checker.newest + 1 :])
        return True

    def _look(self) -> None:
        newest = self._lake.newest()
        if newest is None:
            if self.newest is not None:
                self._unreadable.append(f"publication {self.newest} is gone, there is none")
            return
        if self.newest is not None and newest.batch < self.newest:
            self._unreadable.append(f"publication {self.newest} is gone, newest is {newest.batch}")
        # No totals are kept between looks: a version must stay readable while it is published.
        totals = self._lake.totals(newest, self._checker.measures)
        self._seen.append((newest.batch, totals))
        self.newest = newest.batch

    def _compare(self) -> None:
        self.postponed += len(self._seen) - 1
        for batch, values in self._seen:
            place = self._checker.check(f"reader at publication {batch}", values)
            self.checks += 1
            if place is not None:
                self.shown = place.last
        self._seen = []
