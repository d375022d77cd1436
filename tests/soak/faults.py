"""What is done to a live run: each fault strikes one part and brings it back.

A fault ends when the part runs again; how long the lake then takes to show everything that was
committed until then is its time to recover. No fault needs a person: what ends by itself is started
again as a scheduler would (``tests.live.ingest``), everything else must find its way back.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lakeingest.apply.failpoints import FAILPOINTS
from tests.faults.killed import Writer
from tests.live.ingest import Ingest
from tests.live.relay import Relay
from tests.live.stage import Stage
from tests.live.watch import LiveWatcher
from tests.rig.process import Server
from tests.workloads.shop import Shop

STRIKE_SECONDS = 150.0
"""How long a failpoint, or a giant, may take to come by."""

LOST_REPLY = (sys.executable, "-m", "tests.soak.unprotected", "lost-reply", "run")


class NotStruckError(Exception):
    """What was to be struck did not come by in time."""


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes:
        name: For the table.
        kills: Processes that it kills.
        strike: Does it; returns when the part runs again.
    """

    name: str
    kills: int
    strike: Callable[[], None]


@dataclass(frozen=True)
class Faults:
    """The faults of one live run.

    Attributes:
        stage: Database, workload and chain.
        ingest: The run that is kept alive.
        watcher: The reader that looks at it.
        relay: The mirror that feeds it.
        rng: Chooses moments.
    """

    stage: Stage
    ingest: Ingest
    watcher: LiveWatcher
    relay: Relay
    rng: random.Random

    def planned(self, rounds: int) -> list[Fault]:
        """Return the faults of so many rounds, shuffled within each; failpoints are in all."""
        chain = self.stage.chain
        server = chain.postgres if self.stage.play.family == "postgresql" else chain.mariadb
        faults: list[Fault] = []
        for _ in range(rounds):
            some = [self._at_failpoint(name) for name in FAILPOINTS]
            some += [Fault("ingest at random", 1, self._ingest_at_random) for _ in range(3)]
            some += [
                Fault("Connect, amid a giant", 1, self._connect_amid_a_giant),
                Fault("Connect", 1, lambda: self._restarted(chain.connect)),
                Fault("broker", 1, lambda: self._restarted(chain.broker)),
                Fault("database", 1, lambda: self._restarted(server)),
                Fault("driver frozen, second started", 0, self._frozen),
                Fault("reply of a table commit lost", 1, self._lost_reply),
                Fault("all topics again from offset 0", 0, self.relay.redeliver),
            ]
            self.rng.shuffle(some)
            faults += some
        return faults

    def _at_failpoint(self, name: str) -> Fault:
        hit = self.rng.choice((1, 1, 2)) if name.startswith(("3.", "4.")) else 1

        def strike() -> None:
            before = self.ingest.kills[name]
            self.ingest.next_life(f"{name}:{hit}")
            self._until(lambda: self.ingest.kills[name] > before, name)

        return Fault(f"ingest at {name}", 2, strike)

    def _ingest_at_random(self) -> None:
        time.sleep(self.rng.uniform(0.0, 8.0))
        self.ingest.next_life()

    def _connect_amid_a_giant(self) -> None:
        workload = self.stage.workload
        assert isinstance(workload, Shop), "only the shop has giants"
        counts = workload.counts
        giants = counts.changes["giant"]
        self._until(lambda: counts.changes["giant"] > giants, "a giant", pause=0.02)
        time.sleep(self.rng.uniform(0.0, 0.6))
        self._restarted(self.stage.chain.connect)

    def _restarted(self, server: Server) -> None:
        server.kill()
        time.sleep(self.rng.uniform(0.0, 3.0))
        server.start()

    def _frozen(self) -> None:
        """A driver stops for a while, a scheduler starts another; then the first goes on."""
        first = self.ingest.writer
        first.pause()
        second = self.ingest.second()
        try:
            newest = self.watcher.newest or 0
            self._until(lambda: (self.watcher.newest or 0) > newest, "the second's publication")
        finally:
            first.resume()
            self._fenced(second)

    def _fenced(self, second: Writer) -> None:
        """Wait until the first, started again after it was fenced, has fenced the second."""
        if second.wait(STRIKE_SECONDS) is None:
            second.kill()
            message = f"two drivers go on beside one another: {second.said()}"
            raise NotStruckError(message)

    def _lost_reply(self) -> None:
        ends = self.ingest.ends.total()
        self.ingest.next_life(command=LOST_REPLY)
        self._until(lambda: self.ingest.ends.total() >= ends + 2, "the lost reply")

    def _until(self, reached: Callable[[], bool], what: str, pause: float = 0.1) -> None:
        deadline = time.monotonic() + STRIKE_SECONDS
        while not reached():
            if time.monotonic() > deadline:
                message = f"{what} did not come by in {STRIKE_SECONDS:.0f} s"
                raise NotStruckError(message)
            time.sleep(pause)


def names(faults: Sequence[Fault]) -> list[str]:
    """Return the different names, in the order of their first appearance."""
    return list(dict.fromkeys(fault.name for fault in faults))
