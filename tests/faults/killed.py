"""A run that is killed again and again, while a reader looks at what is published.

The writer is the real command in a process group of its own; a kill is SIGKILL to the whole group,
so that no JVM lives on to finish a commit that its driver never asked about again. The reader is a
thread of this process.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from deltalake.exceptions import DeltaError
from pyspark.sql import SparkSession

from lakeingest.errors import LakeingestError
from lakeingest.reader import open_lake
from tests.recordings.check import History, check_history, check_tables
from tests.recordings.compare import Comparison
from tests.recordings.configure import RecordedRun, write_properties
from tests.recordings.rust import RustLake
from tests.recordings.totals import Published, ReadBySpark
from tests.recordings.watcher import reader_of

REPOSITORY = Path(__file__).resolve().parents[2]
RUN_COMMAND = (sys.executable, "-m", "lakeingest.cli.main", "run")

INTERRUPTED = 130
"""Exit code of a run that was stopped by a person."""

FORMAT_HUDI = ("lakeingest.target.format", "hudi")

PATIENCE_SECONDS = 900.0
"""A run that takes longer hangs."""


def continuous(seconds: float, command: Sequence[str] = RUN_COMMAND) -> tuple[str, ...]:
    """Return a command that goes on, and looks for more at most every so many seconds."""
    return (*command, "--continuous", "--min-sync-interval-seconds", str(seconds))


class Writer:
    """One ``lakeingest run`` in a process group of its own."""

    def __init__(
        self,
        configuration: Path,
        log: Path,
        failpoint: str | None = None,
        command: Sequence[str] = RUN_COMMAND,
    ) -> None:
        environment = {k: v for k, v in os.environ.items() if k != "LAKEINGEST_FAILPOINT"}
        if failpoint is not None:
            environment["LAKEINGEST_FAILPOINT"] = failpoint
        self.log = log
        self.started = time.monotonic()
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [*command, str(configuration)],
                cwd=REPOSITORY,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait(self, seconds: float = PATIENCE_SECONDS) -> int | None:
        """Return the exit code (minus the signal's number), or None if it still runs.

        Whatever the driver left running in its group is killed with it.
        """
        try:
            code = self._process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return None
        self._signal(signal.SIGKILL)
        return code

    def kill(self) -> None:
        """Kill the driver and its JVM, as a machine that loses power does."""
        self._signal(signal.SIGKILL)
        self._process.wait()

    def interrupt(self) -> None:
        """Stop the driver as a person with Ctrl-C does, or a scheduler with SIGTERM."""
        self._process.send_signal(signal.SIGTERM)

    def pause(self) -> None:
        """Stop every process of the run, as a long garbage collection or a frozen VM does."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused run go on."""
        self._signal(signal.SIGCONT)

    def said(self) -> str:
        """Return the end of what the run wrote to stdout and stderr."""
        return self.log.read_text(encoding="utf-8", errors="replace")[-3000:]

    def _signal(self, number: int) -> None:
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            # Nothing of the group is left.
            return


@dataclass(frozen=True)
class Kill:
    """One way to end a run: at a failpoint when it is passed the n-th time, or after a while."""

    failpoint: str | None = None
    hit: int = 1
    seconds: float = PATIENCE_SECONDS

    @property
    def label(self) -> str:
        """Name for the table of results."""
        return self.failpoint or "random"

    @property
    def value(self) -> str | None:
        """Value of ``LAKEINGEST_FAILPOINT``."""
        return None if self.failpoint is None else f"{self.failpoint}:{self.hit}"


@dataclass
class Outcome:
    """What was seen over all attempts.

    Attributes:
        kills: Runs that were killed, by label.
        unreached: Failpoints that a whole run never passed.
        reader_checks: Snapshots the reader compared while the runs went on.
        lakes: Lakes that were ingested to the end and compared.
        publications: Publications compared afterwards, of all lakes.
        violations: Everything that was wrong.
        tables: Comparison of the final tables of the last lake.
    """

    kills: dict[str, int] = field(default_factory=dict)
    unreached: list[str] = field(default_factory=list)
    reader_checks: int = 0
    lakes: int = 0
    publications: int = 0
    violations: list[str] = field(default_factory=list)
    tables: tuple[Comparison, ...] = ()


@dataclass
class Ordeal:
    """Kills the ingestion of one recorded run in the given ways, then lets it finish.

    Attributes:
        spark: Session that compares at the end.
        run: The recorded run.
        folder: Empty folder to work in.
        settings: Properties beyond the run's own; small batches give many moments to kill.
        say: Where progress goes.
        begin: Begins a lake, given its configuration; None: the first run does.
    """

    spark: SparkSession
    run: RecordedRun
    folder: Path
    settings: Mapping[str, str]
    say: Callable[[str], object] = print
    begin: Callable[[Path], object] | None = None

    def __post_init__(self) -> None:
        self.outcome = Outcome()
        self._attempt = 0

    def suffer(self, kills: Iterable[Kill]) -> Outcome:
        """Kill in every given way, finish, and return what was seen.

        Where a run finishes before it is killed, its lake is compared and a new one is begun; a
        failpoint gets a second chance there, on its first pass.
        """
        waiting = list(kills)
        again: set[str] = set()
        while True:
            target, configuration = self._new_lake()
            watcher = reader_of(self.run, target, hudi=FORMAT_HUDI in self.settings.items())
            watcher.start()
            try:
                if self.begin is not None:
                    self.begin(configuration)
                self._attempts(configuration, waiting, again)
            finally:
                watcher.stop()
                self.outcome.reader_checks += watcher.checks
                self.outcome.violations += watcher.violations
            self._compare(target, configuration)
            if not waiting:
                return self.outcome

    def _attempts(self, configuration: Path, waiting: list[Kill], again: set[str]) -> None:
        """Run until a run ends by itself; take a kill from ``waiting`` for each attempt."""
        while True:
            kill = waiting.pop(0) if waiting else None
            writer = self._start(configuration, kill)
            code = writer.wait(kill.seconds if kill else PATIENCE_SECONDS)
            if code is None:
                writer.kill()
                if kill is None or kill.failpoint is not None:
                    self.outcome.violations.append(f"the run hangs: {writer.said()}")
                    return
                code = -signal.SIGKILL
            if code == -signal.SIGKILL and kill is not None:
                self.outcome.kills[kill.label] = self.outcome.kills.get(kill.label, 0) + 1
                self.say(f"killed: {kill.label}, after {time.monotonic() - writer.started:.1f} s")
                continue
            if code != 0:
                self.outcome.violations.append(f"the run ended with {code}: {writer.said()}")
            if kill is not None and kill.failpoint is not None:
                if kill.failpoint in again:
                    self.outcome.unreached.append(kill.failpoint)
                else:
                    again.add(kill.failpoint)
                    waiting.insert(0, Kill(kill.failpoint))
            return

    def _start(self, configuration: Path, kill: Kill | None) -> Writer:
        self._attempt += 1
        log = self.folder / f"attempt-{self._attempt}.log"
        return Writer(configuration, log, kill.value if kill else None)

    def _new_lake(self) -> tuple[Path, Path]:
        number = self.outcome.lakes + 1
        target = self.folder / f"lake-{number}"
        properties = {**self.run.configuration(target), **self.settings}
        return target, write_properties(self.folder / f"pipeline-{number}.properties", properties)

    def _lake(self, target: Path) -> Published:
        if FORMAT_HUDI in self.settings.items():
            return ReadBySpark(open_lake(self.spark, str(target)), self.run.namespace)
        return RustLake(target, self.run.namespace)

    def _compare(self, target: Path, configuration: Path) -> None:
        self.outcome.lakes += 1
        try:
            history: History = check_history(self.run, self._lake(target))
        except (LakeingestError, DeltaError) as error:
            self.outcome.violations.append(f"the finished lake cannot be read: {error}")
            return
        self.outcome.publications += history.publications
        self.outcome.violations += history.violations
        if history.place is None or history.place.last != history.of:
            self.outcome.violations.append(f"the last publication shows commit {history.place}")
        if self.run.oracle.knows_final:
            self.outcome.tables = check_tables(self.run, configuration)
        self.outcome.violations += [
            f"{table.table}: {difference}"
            for table in self.outcome.tables
            for difference in table.differences
        ]


def random_kills(number: int, seed: int, earliest: float, latest: float) -> list[Kill]:
    """Return kills at random moments of a run, the same for the same seed."""
    choose = random.Random(seed)
    return [Kill(seconds=choose.uniform(earliest, latest)) for _ in range(number)]


def failpoint_kills(names: Iterable[str]) -> list[Kill]:
    """Return one kill per failpoint, the last steps of a batch first.

    From the end to the beginning, because each of the later ones leaves tables and publications
    for those before it to meet: fencing the tables of an empty lake is passed by nobody. Inside a
    batch every other failpoint strikes at its second pass and leaves a publication of the same
    process behind; steps 1 and 2 may be passed only once per run.
    """
    return [
        Kill(name, hit=1 + at % 2 if name.startswith(("3.", "4.")) else 1)
        for at, name in enumerate(reversed(list(names)))
    ]
