"""Everything that one live run needs, brought up in order, each step with its seconds."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.live.run import LiveRun
from tests.oracles.live import LiveOracle, live_oracle
from tests.rig.chain import Chain
from tests.rig.connectors import Format
from tests.workloads.bank import bank
from tests.workloads.crew import Pace
from tests.workloads.shop import Schedule, Shop
from tests.workloads.source import Family, Source
from tests.workloads.sysbench import Sysbench
from tests.workloads.workload import Workload

WORKLOADS = ("bank", "shop", "sysbench")


@dataclass(frozen=True)
class Play:
    """What is to happen on the database.

    Attributes:
        workload: One of ``WORKLOADS``.
        family: Which database.
        seed: Repeats the choice of steps and values.
        pace: How many clients, how fast, how long.
        schedule: When what is rare comes, in the shop.
        bulk: Rows of the shop's table ``bulk`` before the run.
        accounts: Accounts of the bank.
        rows: Rows of each of sysbench's tables.
    """

    workload: str
    family: Family
    seed: int = 1
    pace: Pace = field(default_factory=Pace)
    schedule: Schedule = field(default_factory=Schedule)
    bulk: int = 2_000
    accounts: int = 1_000
    rows: int = 1_000

    def on(self, source: Source) -> Workload:
        """Return the workload on a database."""
        if self.workload == "bank":
            return bank(source, self.seed, self.pace, self.accounts)
        if self.workload == "sysbench":
            return Sysbench(source, self.seed, self.pace, self.rows)
        return Shop(source, self.seed, self.pace, self.schedule, self.bulk)


class Stage:
    """A chain, a database with a workload, and its oracle.

    Args:
        chain: A started chain with the database.
        play: What is to happen.
        folder: Where the truth and the lakes are kept.

    Attributes:
        seconds: How long each step took, by its name.
    """

    def __init__(self, chain: Chain, play: Play, folder: Path) -> None:
        self.chain, self.play, self.folder = chain, play, folder
        self.seconds: dict[str, float] = {}
        server = chain.postgres if play.family == "postgresql" else chain.mariadb
        server.create_database(play.workload)
        self.source = Source(server, play.workload, play.family)
        self.workload = play.on(self.source)
        with self.step("create tables"):
            self.workload.create()
        self.truth = folder / "truth"
        self.oracle: LiveOracle = live_oracle(self.source, self.workload.captured, self.truth)
        with self.step("begin oracle"):
            self.oracle.begin()

    def run(self, written: Format) -> LiveRun:
        """Return the run as a connector writes it in a format; there is no connector yet."""
        captured = self.workload.captured
        return LiveRun(self.play.workload, written, self.source, captured, self.truth)

    def captured(self, formats: Sequence[Format]) -> list[LiveRun]:
        """Play until connectors stream in each format; their snapshots see the workload begin."""
        runs = [self.run(written) for written in formats]
        self.workload.start()
        for run in runs:
            run.capture(self.chain)
        for run in runs:
            run.wait_until_streaming(self.chain)
        self.workload.release()
        return runs

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Measure a step."""
        began = time.monotonic()
        yield
        self.seconds[name] = time.monotonic() - began

    def print_seconds(self) -> None:
        """Say how long each step took."""
        for name, seconds in {**self.chain.seconds, **self.seconds}.items():
            if seconds >= 0.05:
                print(f"   {name:34} {seconds:7.1f} s")
