"""A reader that looks at what is published while everything around it is killed.

What a publication shows is compared with the commits that the database itself knows of, by a log
that is read after the publication was seen: so its commit is always among them. While the database
is down its log cannot be read, and the comparison waits until it can.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.live.run import LiveRun
from tests.oracles.live import LiveOracle
from tests.recordings.known import uncounted
from tests.recordings.oracle import Totals
from tests.recordings.prefix import PrefixChecker
from tests.recordings.rust import RustLake
from tests.recordings.watcher import Watcher

_PAUSE_SECONDS = 1.0


class LiveWatcher(Watcher):
    """Compares what is published with what the database tells of.

    Attributes:
        shown: The commit that the newest compared snapshot shows at least; -1 before the first.
        postponed: Comparisons that had to wait for the database.
    """

    def __init__(self, run: LiveRun, oracle: LiveOracle, target: Path) -> None:
        checker = PrefixChecker(ignored=uncounted(run.name, run.form))
        super().__init__(RustLake(target, run.namespace), checker, _PAUSE_SECONDS)
        self._run, self._oracle = run, oracle
        self._seen: list[tuple[int, Totals]] = []
        self.shown = -1
        self.postponed = 0

    @property
    def commits(self) -> int:
        """Number of the last commit that the oracle has told of."""
        return self._checker.newest

    def step(self) -> None:
        """Look once; compare what was seen as soon as the database has told of it."""
        self._hear()
        self._seen += self.look()
        if self._seen and self._hear():
            self._compare()

    def wait_until_shown(
        self, commit: int, seconds: float, going_on: Callable[[], bool] = lambda: True
    ) -> bool:
        """Return whether a snapshot that shows commit number ``commit`` was seen in time.

        Args:
            commit: The commit.
            seconds: How long to wait.
            going_on: Asked while waiting; there is no use in it when this is false.
        """
        self.wait_until(lambda: self.shown >= commit or not going_on(), seconds)
        return self.shown >= commit

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

    def _compare(self) -> None:
        self.postponed += len(self._seen) - 1
        for batch, values in self._seen:
            place = self._checker.check(f"reader at publication {batch}", values)
            self.checks += 1
            if place is not None:
                self.shown = place.last
        self._seen = []
