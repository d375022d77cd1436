"""What a failed command says and returns.

An error that lakeingest raises on purpose says all that is needed in its message and carries its
exit code. Anything else is a defect, of ours or below us: its message may hold row values (Spark
quotes the value it cannot cast), so the screen gets the kind of error and the place of a file that
holds the traceback, readable by the user alone.
"""

from __future__ import annotations

import os
import tempfile
import traceback

from lakeingest.cli.output import message
from lakeingest.cli.stopping import say_stopped
from lakeingest.config.redaction import scrub
from lakeingest.errors import LakeingestError

INTERNAL_EXIT_CODE = LakeingestError.exit_code


def report(error: BaseException, *, debug: bool) -> int:
    """Write what went wrong to stderr and return the exit code of the process.

    Args:
        error: What ended the command.
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
        message(f"the traceback is in {_kept(error)} (--debug shows it)")
    return INTERNAL_EXIT_CODE


def was_stopped(error: BaseException) -> bool:
    """Tell whether Ctrl-C or SIGTERM stands behind an error.

    Stopping a run kills its Spark jobs, whose errors may be raised over the interrupt while the
    run is cleaned up.
    """
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, KeyboardInterrupt):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def _kind(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        where = f": {error.filename}" if error.filename else ""
        return f"{error.strerror}{where}"
    name = type(error).__name__
    # PySpark's errors name their class (TABLE_OR_VIEW_NOT_FOUND) apart from their values.
    error_class = getattr(error, "getErrorClass", lambda: None)()
    return f"internal error, {name} {error_class}" if error_class else f"internal error, {name}"


def _traceback(error: BaseException) -> str:
    return scrub("".join(traceback.format_exception(type(error), error, error.__traceback__)))


def _kept(error: BaseException) -> str:
    handle, path = tempfile.mkstemp(prefix="lakeingest-", suffix=".log")
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write(_traceback(error))
    return path
