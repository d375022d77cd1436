"""Report the error of a failed command, and return its exit code.

An error that lakeingest raises on purpose says everything in its message and carries its exit code.
Any other error is a defect, of lakeingest or of a library below it. Its message may hold row values
(Spark quotes the value that it cannot cast). So the screen shows only the kind of error and the
path of a file with the traceback, which only the user can read.
"""

from __future__ import annotations

import os
import tempfile
import traceback

from lakeingest.cli.output import message
from lakeingest.cli.stopping import say_stopped, stop_requested
from lakeingest.config.redaction import scrub
from lakeingest.errors import LakeingestError, was_interrupted

INTERNAL_EXIT_CODE = LakeingestError.exit_code


def report(error: BaseException, *, debug: bool) -> int:
    """Write the error to stderr and return the exit code of the process.

    Args:
        error: The exception that ended the command.
        debug: Whether to write the traceback to stderr.
    """
    if debug:
        message(_traceback(error))
    if was_stopped(error):
        return say_stopped()
    if isinstance(error, LakeingestError):
        message(f"error: {error}")
        message(f"what to do: {error.advice}")
        return error.exit_code
    message(f"error: {_kind(error)}")
    if not debug:
        message(f"the traceback is in {_traceback_file(error)} (--debug shows it)")
    return INTERNAL_EXIT_CODE


def was_stopped(error: BaseException) -> bool:
    """Return whether Ctrl-C or SIGTERM caused an error.

    Stopping a run cancels its Spark jobs. Their errors may replace the interrupt, during the
    cleanup or before it reaches the main thread.
    """
    return stop_requested() or was_interrupted(error)


def _kind(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        where = f": {error.filename}" if error.filename else ""
        return f"{error.strerror}{where}"
    name = type(error).__name__
    # PySpark's errors give their class (TABLE_OR_VIEW_NOT_FOUND) separately from row values.
    error_class = getattr(error, "getErrorClass", lambda: None)()
    return f"internal error, {name} {error_class}" if error_class else f"internal error, {name}"


def _traceback(error: BaseException) -> str:
    return scrub("".join(traceback.format_exception(type(error), error, error.__traceback__)))


def _traceback_file(error: BaseException) -> str:
    handle, path = tempfile.mkstemp(prefix="lakeingest-", suffix=".log")
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write(_traceback(error))
    return path
