"""A server of the rig: one process on loopback that a test can kill, freeze and start again.

Rejected: a container, which most places where these tests must run do not have; fixed ports, which
two runs on one machine would fight for; and to wait for a line in a log, which servers print before
they serve. Ready is when a client is answered.

A port is picked by binding it, and others are tried if one is taken before the server gets it. It
lies below the ports that systems give to outgoing connections: while a server is dead its clients
knock at its port again and again, and one that was given this very port for its own end would
connect to itself and hold it. A server that comes back keeps its ports, for they know it by them.

``kill`` and ``freeze`` act on the process and all that it started, by their ids: PostgreSQL's
children lead sessions of their own, which no signal to a group reaches. The ids come from
``/proc``; without one (macOS) only the process itself is signalled, which is all that the others
consist of.
"""

from __future__ import annotations

import atexit
import os
import random
import re
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import ClassVar

from typing_extensions import Self

__all__ = ["Server"]

_STOP_SECONDS = 20.0
_GONE_SECONDS = 20.0
_ATTEMPTS = 5
_PORTS = range(15_000, 32_000)
_TAKEN = re.compile(r"already in use|failed to bind|in use by another", re.IGNORECASE)


class Server(ABC):
    """A server with data in a folder of its own; a context manager that starts and stops it.

    Args:
        folder: Where it keeps its data and its log; empty, or what this object left there.

    Attributes:
        seconds_to_ready: How long the last start took.
    """

    port_count: ClassVar[int] = 1
    ready_seconds: ClassVar[float] = 120.0
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM

    def __init__(self, folder: Path) -> None:
        self.seconds_to_ready = 0.0
        self._folder = folder
        self._ports: tuple[int, ...] = ()
        self._process: subprocess.Popen[bytes] | None = None
        self._log_begin = 0

    @abstractmethod
    def fetch(self) -> None:
        """Bring the programs; not counted in ``seconds_to_ready``."""

    @abstractmethod
    def _prepare(self) -> None:
        """Make data and settings for ``_ports`` in a folder that may hold those of other ports."""

    @abstractmethod
    def _command(self) -> list[str]:
        """Return the program and its arguments."""

    @abstractmethod
    def _answers(self) -> bool:
        """Ask once, as a client. Called only when the first port listens."""

    def _environment(self) -> dict[str, str]:
        return dict(os.environ)

    @property
    def port(self) -> int:
        """The first port; it stays the same for all lives of the server."""
        assert self._ports, f"{self._name} was never started"
        return self._ports[0]

    @property
    def pid(self) -> int:
        """The id of the running process."""
        assert self._process is not None, f"{self._name} does not run"
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process was started and has not ended by itself."""
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> Path:
        """What the process printed in all its lives."""
        return self._folder / f"{self._name}.log"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start and wait until it serves; after a stop or a kill, on the ports of before.

        Raises:
            RuntimeError: It did not come up; the message ends with its log.
        """
        assert self._process is None, f"{self._name} runs already"
        self.fetch()
        self._folder.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        first = not self._ports
        for attempt in range(_ATTEMPTS):
            if first:
                self._ports = _free_ports(self.port_count)
                self._prepare()
            elif attempt:
                time.sleep(1.0)  # The ports are its own; whoever has them now may let go.
            self._launch()
            if self._serves():
                self.seconds_to_ready = time.monotonic() - began
                return
            self.kill()
            if not _TAKEN.search(self._said()):
                break
        message = f"{self._name} did not come up: {self._said()[-3000:]}"
        raise RuntimeError(message)

    def stop(self) -> None:
        """Stop in order, kill it if that takes too long. Safe to call twice."""
        if self._process is None:
            return
        self.thaw()
        self._process.send_signal(self.stop_signal)
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        self._forget()

    def kill(self) -> None:
        """End it as ``kill -9`` does, with its children; ``start`` brings it back with its data."""
        if self._process is None:
            return
        # Stopped first, so that it makes no further child while they are counted.
        self._process.send_signal(signal.SIGSTOP)
        family = _family(self._process.pid)
        self._process.send_signal(signal.SIGKILL)
        for child in family[1:]:
            _signal(child, signal.SIGKILL)
        self._process.wait()
        deadline = time.monotonic() + _GONE_SECONDS
        while any(_lives(child) for child in family[1:]) and time.monotonic() < deadline:
            time.sleep(0.01)
        self._forget()

    def freeze(self) -> None:
        """Stop the clock for it (SIGSTOP): its connections stay open and nobody answers."""
        for member in _family(self.pid):
            _signal(member, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on after ``freeze``. Safe to call on one that was not frozen."""
        for member in reversed(_family(self.pid)):
            _signal(member, signal.SIGCONT)

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _launch(self) -> None:
        with self.log.open("ab") as log:
            self._log_begin = log.tell()
            self._process = subprocess.Popen(
                self._command(),
                cwd=self._folder,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Ctrl-C is for the test, which then stops the server in order.
                start_new_session=True,
            )
        atexit.register(self.kill)

    def _serves(self) -> bool:
        deadline = time.monotonic() + self.ready_seconds
        while time.monotonic() < deadline and self.running:
            # Asked by socket first: some clients log each refused connection.
            with socket.socket() as probe:
                probe.settimeout(1.0)
                listens = probe.connect_ex(("127.0.0.1", self.port)) == 0
            if listens and self._answers():
                return True
            time.sleep(0.05)
        return False

    def _said(self) -> str:
        with self.log.open("rb") as log:
            log.seek(self._log_begin)
            return log.read().decode(errors="replace")

    def _forget(self) -> None:
        self._process = None
        atexit.unregister(self.kill)


def _free_ports(count: int) -> tuple[int, ...]:
    """Return ports that were free a moment ago; each is held until all are known."""
    found: list[int] = []
    with ExitStack() as held:
        for port in random.sample(_PORTS, len(_PORTS)):
            probe = held.enter_context(socket.socket())
            with suppress(OSError):
                probe.bind(("127.0.0.1", port))
                found.append(port)
            if len(found) == count:
                return tuple(found)
    message = f"{count} free ports were wanted, {len(found)} found"
    raise RuntimeError(message)


def _family(pid: int) -> list[int]:
    """Return a process and all that descend from it, ancestors first."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name, in parentheses, may hold anything; state and parent follow it.
            _, parent = entry.read_text(errors="replace").rpartition(")")[2].split()[:2]
            children.setdefault(int(parent), []).append(int(entry.parent.name))
    family = [pid]
    for member in family:
        family += children.get(member, [])
    return family


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _lives(pid: int) -> bool:
    """Whether a process is there and not a corpse that its new parent has yet to bury."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return False
    return not stat.rpartition(")")[2].split()[0].startswith(("Z", "X"))
