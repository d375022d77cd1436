"""Stopping by Ctrl-C or SIGTERM: orderly if that is quick, otherwise at once.

A signal raises KeyboardInterrupt in the main thread only. Threads that wait for a Spark job go on
waiting, and may even submit the next job after PySpark cancelled the running ones, so the process
could live for minutes after it was told to stop, and a scheduler would kill it from outside. Since
a kill at any moment is safe (what is not published is invisible), the process gives the orderly
way a few seconds and then leaves. A second signal leaves at once.

The signal is learnt from the wake-up descriptor and not from a handler, because PySpark puts its
own handler for Ctrl-C in place of any other when a session starts.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from lakeingest.cli.output import message

GRACE_SECONDS = 10.0
"""Time that the orderly way has: enough to cancel jobs and stop Spark on a busy machine."""

STOPPED = "stopped; nothing half-done is visible; run again to go on"
STOPPED_EXIT_CODE = 130
"""128 + SIGINT, as shells report it."""

_STOPPING = frozenset({signal.SIGINT, signal.SIGTERM})


# Set once the current command has said that it was stopped.
_said = threading.Event()
_saying = threading.Lock()


def say_stopped() -> int:
    """Tell the person, once for a command, that it was stopped; returns the exit code for it."""
    # The command and the watch may both be about to; whoever is second waits for the other's line,
    # but not for ever: the line may be what hangs.
    if _saying.acquire(timeout=1.0):
        try:
            if not _said.is_set():
                message(STOPPED)
                _said.set()
        finally:
            _saying.release()
    return STOPPED_EXIT_CODE


@contextmanager
def sigterm_like_interrupt() -> Iterator[None]:
    """Treat SIGTERM, by which schedulers stop a job, like Ctrl-C for the time of a command."""
    _said.clear()
    if threading.current_thread() is not threading.main_thread():
        yield  # Called by a program that has its own ways with signals, and keeps them.
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        # Looked up at the time of the signal: PySpark's handler of SIGINT cancels the running jobs.
        handler = signal.getsignal(signal.SIGINT)
        if callable(handler):
            handler(number, frame)
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def leave_soon_after_a_signal(grace_seconds: float = GRACE_SECONDS) -> None:
    """Have this process end at most ``grace_seconds`` after SIGINT or SIGTERM, or at the second.

    For the process of a command only: it ends without waiting for any thread.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    watch = threading.Thread(target=_watch, args=(reading, grace_seconds), daemon=True)
    watch.start()


def _watch(signals: int, grace_seconds: float) -> None:
    while os.read(signals, 1)[0] not in _STOPPING:
        pass
    select.select([signals], [], [], grace_seconds)
    code = say_stopped()
    # The JVM ends by itself when this process, at the other end of its stdin, is gone.
    os._exit(code)
