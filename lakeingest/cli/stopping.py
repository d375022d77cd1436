"""Stop on Ctrl-C or SIGTERM: orderly if that is quick, otherwise at once.

A signal raises KeyboardInterrupt in the main thread only. Threads that wait for a Spark job keep
waiting, and may even submit the next job after PySpark has cancelled the running ones. So the
process could live for minutes after the signal, and a scheduler would kill it from outside. A kill
is safe at any moment (unpublished data is invisible). So the process gives the orderly stop a few
seconds and then exits. A second signal exits at once.

A thread reads the signals from the wake-up descriptor. Rejected: a signal handler; when a session
starts, PySpark replaces the handler of Ctrl-C by its own.
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
"""Time for the orderly stop: enough to cancel jobs and stop Spark on a busy machine."""

STOPPED = "stopped; nothing half-done is visible; run again to go on"
STOPPED_EXIT_CODE = 130
"""128 + SIGINT, the exit code that shells report."""

_STOPPING = frozenset({signal.SIGINT, signal.SIGTERM})


# Set when the current command has written the message ``STOPPED``.
_message_written = threading.Event()
_message_lock = threading.Lock()


def say_stopped() -> int:
    """Write the message ``STOPPED``, once for a command, and return the exit code for it."""
    # The command and the watching thread may both want to write it. The second one waits for the
    # first one's line, but not for ever: writing the line may be what hangs.
    if _message_lock.acquire(timeout=1.0):
        try:
            if not _message_written.is_set():
                message(STOPPED)
                _message_written.set()
        finally:
            _message_lock.release()
    return STOPPED_EXIT_CODE


@contextmanager
def sigterm_like_interrupt() -> Iterator[None]:
    """Treat SIGTERM, with which schedulers stop a job, like Ctrl-C while a command runs."""
    _message_written.clear()
    if threading.current_thread() is not threading.main_thread():
        yield  # The calling program handles signals itself: change nothing.
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        # Look the handler up now: by now it may be PySpark's, which cancels the running jobs.
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
    """Make this process exit soon after SIGINT or SIGTERM, and at once after a second signal.

    It exits at most ``grace_seconds`` (seconds) after the first signal. Only for the process of a
    command: it exits without waiting for any thread.
    """
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    watch = threading.Thread(target=_watch, args=(read_end, grace_seconds), daemon=True)
    watch.start()


def _watch(signals: int, grace_seconds: float) -> None:
    while os.read(signals, 1)[0] not in _STOPPING:
        pass
    select.select([signals], [], [], grace_seconds)
    code = say_stopped()
    # The JVM ends by itself when its stdin closes, that is, when this process ends.
    os._exit(code)
