"""Errors by what the user should do, not by where they came from.

The rejected way is one class per subsystem (``KafkaError``, ``DeltaError`` …): a scheduler or an
on-call engineer does not act on the subsystem but on the consequence. Each class below therefore
names one consequence and carries the process exit code (``sysexits.h`` numbers) that a scheduler
can branch on. A message names table, transaction, topic, offset and remedy; it never carries a row
value or a secret.
"""

from __future__ import annotations

from typing import ClassVar


class LakeingestError(Exception):
    """Root of every error that lakeingest raises on purpose.

    Attributes:
        exit_code: Process exit code of the command line for this error.
        advice: One word to a person about what to do next.
    """

    exit_code: ClassVar[int] = 1
    advice: ClassVar[str] = "please report"


class InvariantError(LakeingestError):
    """A promise of ours does not hold: a defect in lakeingest. Please report it."""


class UsageError(LakeingestError):
    """The command was called with arguments that make no sense together."""

    exit_code = 2
    advice = "see --help"


class ConfigError(LakeingestError):
    """The configuration must change. Names the key, the places looked, the nearest known key."""

    exit_code = 78
    advice = "fix the configuration"


class DataError(LakeingestError):
    """The data cannot be applied as it lies in the log. Nothing of it was published."""

    exit_code = 65
    advice = "look at the named records"


class UnavailableError(LakeingestError):
    """A service or file that the run needs is not there (broker, topic, Java, jar)."""

    exit_code = 69
    advice = "check that it is up and reachable"


class TransientError(LakeingestError):
    """The same command may succeed when tried again."""

    exit_code = 75
    advice = "run again"


class FencedError(TransientError):
    """Another run of this pipeline took over the lake; this one stopped without publishing."""

    advice = "let the other run finish, or stop it and run again"


class AccessError(LakeingestError):
    """The lake or the broker refused access."""

    exit_code = 77
    advice = "check credentials and permissions"
