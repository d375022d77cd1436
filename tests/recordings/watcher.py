"""A reader that looks at the newest publication over and over while its writer is killed.

A thread and another engine (``rust.py``): on two cores a Spark of its own would take from the
writer what it needs, and look ten times less often.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol

from tests.recordings.configure import RecordedRun
from tests.recordings.known import uncounted
from tests.recordings.oracle import Totals
from tests.recordings.prefix import Place, PrefixChecker
from tests.recordings.rust import UNREAD_BY_HUDI_RS, RustLake
from tests.recordings.totals import Publication

PAUSE_SECONDS = 0.5


class PublishedLake(Protocol):
    """What ``rust.RustLake`` offers."""

    def newest(self) -> Publication | None:
        """Return the newest publication; null where there is none."""

    def totals(self, publication: Publication, measures: Mapping[str, Iterable[str]]) -> Totals:
        """Return the totals of the tables in ``measures`` as ``publication`` shows them."""


class Watcher(threading.Thread):
    """Compares the newest publication with the source's commits until it is told to stop.

    Attributes:
        checks: Snapshots that were read in full and compared.
        newest: Number of the newest publication seen; None before the first.
    """

    def __init__(
        self, lake: PublishedLake, checker: PrefixChecker, pause: float = PAUSE_SECONDS
    ) -> None:
        super().__init__(name="watcher", daemon=True)
        self._lake, self._checker, self._pause = lake, checker, pause
        self._over = threading.Event()
        self._unreadable: list[str] = []
        self.checks = 0
        self.newest: int | None = None

    @property
    def violations(self) -> list[str]:
        """Snapshots that show no commit of the source, went back, or could not be read."""
        return [*self._checker.violations, *self._unreadable]

    @property
    def place(self) -> Place | None:
        """The commit that the newest good snapshot shows."""
        return self._checker.place

    def run(self) -> None:
        while not self._over.is_set():
            try:
                self.step()
            except Exception as error:  # noqa: BLE001 - whatever stops a reader is a finding
                said = f"{type(error).__name__}: {str(error)[:500]}"
                self._unreadable.append(f"reader after {self.newest}: {said}")
            self._over.wait(self._pause)

    def stop(self) -> None:
        """End the thread after the look it is at."""
        self._over.set()
        self.join()

    def step(self) -> None:
        """Look once, and compare."""
        for batch, totals in self.look():
            self._checker.check(f"reader at publication {batch}", totals)
            self.checks += 1

    def look(self) -> list[tuple[int, Totals]]:
        """Return number and totals of the newest publication; nothing before the first."""
        newest = self._lake.newest()
        if self.newest is not None and (newest is None or newest.batch < self.newest):
            now = "there is none" if newest is None else f"the newest is {newest.batch}"
            self._unreadable.append(f"publication {self.newest} is gone, {now}")
        if newest is None:
            return []
        # No totals are kept between looks: a version must stay readable while it is published.
        totals = self._lake.totals(newest, self._checker.measures)
        self.newest = newest.batch
        return [(newest.batch, totals)]

    def wait_for(self, batch: int, seconds: float) -> bool:
        """Return whether a publication numbered ``batch`` or more was seen in time."""
        return self.wait_until(lambda: self.newest is not None and self.newest >= batch, seconds)

    def wait_until(self, seen: Callable[[], bool], seconds: float) -> bool:
        """Return whether something was seen in time."""
        deadline = time.monotonic() + seconds
        while not seen():
            if time.monotonic() > deadline or not self.is_alive():
                return False
            time.sleep(0.1)
        return True


def reader_of(run: RecordedRun, target: Path, *, hudi: bool = False) -> Watcher:
    """Return a reader that compares what is published in ``target`` with the run's commits.

    Tables of Hudi that the reader cannot read are compared at the end only, by Spark.
    """
    commits = run.oracle.commits
    assert commits is not None, f"{run.name} has no recorded commits to compare with"
    unread = {t for t, types in run.schemas.items() if UNREAD_BY_HUDI_RS in types.values()}
    left_out = frozenset(unread if hudi else ())
    uncompared = {f"{table}.{name}" for table in left_out for name in commits[-1].get(table, ())}
    checker = PrefixChecker(commits, uncounted(run.name, run.form) | uncompared)
    return Watcher(RustLake(target, run.namespace, left_out), checker)
