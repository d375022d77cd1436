"""A continuous run that is started again whenever it ends, as a scheduler does."""

from __future__ import annotations

import atexit
import signal
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.faults.killed import RUN_COMMAND, Writer, continuous

AGAIN = frozenset({69, 75})
"""Exit codes that say "the same command may succeed later": a scheduler starts it again."""

_PAUSE_SECONDS = 0.5


class Ingest(threading.Thread):
    """Keeps one ``lakeingest run --continuous`` alive.

    Args:
        configuration: Its properties file.
        logs: Folder for what the runs say.
        interval_seconds: ``--min-sync-interval-seconds``.
        usual: The command, up to the configuration.

    Attributes:
        ends: How often a run ended, by exit code (minus the signal's number).
        kills: Failpoints at which runs died, by name.
        violations: Ends that nobody asked for.
    """

    def __init__(
        self,
        configuration: Path,
        logs: Path,
        interval_seconds: float = 2.0,
        usual: Sequence[str] = RUN_COMMAND,
    ) -> None:
        super().__init__(name="ingest", daemon=True)
        self._configuration, self._logs = configuration, logs
        self._interval = interval_seconds
        self._usual = usual
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._writer: Writer | None = None
        self._failpoint: str | None = None
        self._command: Sequence[str] | None = None
        self._starts = 0
        self._expected = False
        self.ends: Counter[int] = Counter()
        self.kills: Counter[str] = Counter()
        self.violations: list[str] = []

    @property
    def writer(self) -> Writer:
        """The process that runs now."""
        while True:
            with self._lock:
                if self._writer is not None:
                    return self._writer
            time.sleep(0.05)

    def next_life(self, failpoint: str | None = None, command: Sequence[str] | None = None) -> None:
        """Kill the process that runs now; only the next one is as told.

        Args:
            failpoint: Where it dies, as ``name:n``.
            command: What it is, instead of ``lakeingest run``.
        """
        with self._lock:
            self._failpoint, self._command = failpoint, command
            self._expected = True
        self.writer.kill()

    def second(self) -> Writer:
        """Start a second process beside the one that runs."""
        return self._launched(None, None)

    def stop(self, seconds: float = 90.0) -> int | None:
        """Stop as a person does; return the exit code, None if it had to be killed."""
        self._over.set()
        writer = self.writer
        writer.interrupt()
        code = writer.wait(seconds)
        if code is None:
            writer.kill()
        self.join()
        return code

    def run(self) -> None:
        # Whatever ends this process, a continuous run must not outlive it.
        atexit.register(self._end)
        while not self._over.is_set():
            with self._lock:
                failpoint, self._failpoint = self._failpoint, None
                command, self._command = self._command, None
                self._expected = False
            writer = self._launched(failpoint, command)
            with self._lock:
                self._writer = writer
            code = None
            while code is None:
                code = writer.wait(1.0)
            if self._over.is_set():
                return
            self._ended(code, failpoint, writer, odd=command is not None)
            self._over.wait(_PAUSE_SECONDS)

    def _end(self) -> None:
        self._over.set()
        if self._writer is not None:
            self._writer.kill()

    def _launched(self, failpoint: str | None, command: Sequence[str] | None) -> Writer:
        with self._lock:
            self._starts += 1
            log = self._logs / f"ingest-{self._starts}.log"
        whole = continuous(self._interval, command or self._usual)
        return Writer(self._configuration, log, failpoint, whole)

    def _ended(self, code: int, failpoint: str | None, writer: Writer, *, odd: bool) -> None:
        self.ends[code] += 1
        if odd:
            # Of a command that is made to fail any end will do; what it left is looked at.
            return
        killed = code == -signal.SIGKILL
        if killed and failpoint is not None and not self._expected:
            self.kills[failpoint.partition(":")[0]] += 1
        elif code not in AGAIN and not (killed and self._expected):
            self.violations.append(f"the run ended with {code}: {writer.said()}")
