"""Define one error class per consequence for the user, not one per subsystem.

The rejected way is one class per subsystem (``KafkaError``, ``DeltaError`` …): a scheduler or an
on-call engineer acts on the consequence, not on the subsystem. So each class below names one
consequence. It carries a process exit code (``sysexits.h`` numbers), so that a scheduler can branch
on it. A message names table, transaction, topic, offset and remedy; it never carries a row value or
a secret.
"""

from __future__ import annotations

from typing import ClassVar


class LakeingestError(Exception):
    """Root of every error that lakeingest raises on purpose.

    Attributes:
        exit_code: Process exit code of the command line for this error.
        advice: A short phrase that says what to do next.
    """

    exit_code: ClassVar[int] = 1
    advice: ClassVar[str] = "please report"


class InvariantError(LakeingestError):
    """lakeingest breaks one of its own promises: a defect in lakeingest. Please report it."""


class UsageError(LakeingestError):
    """The arguments of the command contradict each other."""

    exit_code = 2
    advice = "see --help"


class ConfigError(LakeingestError):
    """The configuration must change. Names the key, the searched places, the nearest valid key."""

    exit_code = 78
    advice = "fix the configuration"


class DataError(LakeingestError):
    """lakeingest cannot apply the data as the log holds it. It published nothing of the data."""

    exit_code = 65
    advice = "look at the named records"


class UnavailableError(LakeingestError):
    """A service or file that the run needs is not there (broker, topic, Java, jar)."""

    exit_code = 69
    advice = "check that it is up and reachable"


class TransientError(LakeingestError):
    """The same command may succeed on the next try."""

    exit_code = 75
    advice = "run again"


class FencedError(TransientError):
    """Another run of this pipeline took over the lake; this one stopped without publishing."""

    advice = "let the other run finish, or stop it and run again"


class AccessError(LakeingestError):
    """The lake or the broker refused access."""

    exit_code = 77
    advice = "check credentials and permissions"


def was_interrupted(error: BaseException) -> bool:
    """Return whether Ctrl-C caused an error: stopping a run cancels its Spark jobs."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, KeyboardInterrupt):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def load_anew(collection: str) -> str:
    """Return the next step where a table cannot change in place, as the end of a sentence."""
    return f"load the table anew (lakeingest reload CONFIG '{collection}')"
