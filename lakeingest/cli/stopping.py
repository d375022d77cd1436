"""Stop on Ctrl-C or SIGTERM: orderly if that is quick, otherwise at once; exit with 130.

A signal raises KeyboardInterrupt in the main thread only. Threads that wait for a Spark job keep
waiting, and may even submit the next job after the running ones were cancelled. So the process
could live for minutes after the signal, and a scheduler would kill it from outside. A kill is safe
at any moment (unpublished data is invisible). So the process gives the orderly stop a few seconds
and then exits. A second signal exits at once.

A thread reads the signals from the wake-up descriptor and cancels the running jobs. Rejected: to
cancel them in the signal's handler, as PySpark's own handler does. The handler runs in the main
thread, which most often waits within py4j for the JVM; to call py4j there again raises an error
("reentrant call") in the place of KeyboardInterrupt. So ``keep_signals`` removes PySpark's handler.
What an interrupted call raises later is of no interest either: once a signal has come, every error
is the stop that was asked for.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from lakeingest.cli.output import message

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GRACE_SECONDS = 10.0
"""Time for the orderly stop: enough to cancel jobs on a busy machine."""

STOPPED = "stopped; nothing half-done is visible; run again to go on"
STOPPED_EXIT_CODE = 130
"""128 + SIGINT, the exit code that shells report; SIGTERM, which acts like Ctrl-C, has the same."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

# Set when a signal has come while the current command runs.
_requested = threading.Event()
# Set when the current command has written the message ``STOPPED``.
_message_written = threading.Event()
_message_lock = threading.Lock()
_sessions: list[SparkSession] = []


def stop_requested() -> bool:
    """Return whether Ctrl-C or SIGTERM has come since the current command began."""
    return _requested.is_set()


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


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    del number, frame
    _requested.set()
    raise KeyboardInterrupt


@contextmanager
def stop_on_signals() -> Iterator[None]:
    """Raise KeyboardInterrupt on Ctrl-C and on SIGTERM while a command runs."""
    _requested.clear()
    _message_written.clear()
    if threading.current_thread() is not threading.main_thread():
        yield  # The calling program handles signals itself: change nothing.
        return
    previous = {number: signal.signal(number, _interrupt) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def keep_signals(spark: SparkSession) -> None:
    """Remove the handler that PySpark puts in place for Ctrl-C when a session starts.

    Args:
        spark: The session, whose jobs a signal cancels.
    """
    _sessions[:] = [spark]
    if signal.getsignal(signal.SIGTERM) is _interrupt:
        signal.signal(signal.SIGINT, _interrupt)


def leave_soon_after_a_signal(grace_seconds: float = GRACE_SECONDS) -> None:
    """Make this process exit soon after SIGINT or SIGTERM, and at once after a second signal.

    It exits at most ``grace_seconds`` (seconds) after the first signal. Only for the process of a
    command: it exits without waiting for any thread.
    """
    # py4j logs the traceback of a call that a signal interrupts, to the root logger.
    logging.getLogger().addFilter(lambda _: not stop_requested())
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    watch = threading.Thread(target=_watch, args=(read_end, grace_seconds), daemon=True)
    watch.start()


def _watch(signals: int, grace_seconds: float) -> None:
    while os.read(signals, 1)[0] not in _SIGNALS:
        pass
    _requested.set()
    threading.Thread(target=_cancel_jobs, daemon=True).start()
    select.select([signals], [], [], grace_seconds)
    code = say_stopped()
    # The JVM ends by itself when its stdin closes, that is, when this process ends.
    os._exit(code)


def _cancel_jobs() -> None:
    for spark in _sessions:
        with suppress(Exception):  # The JVM may be gone, or the session may be one of Connect.
            spark.sparkContext.cancelAllJobs()
