"""Collect what checks refuse that do not need one another, to report it together.

A user who gets one error at a time mends one at a time, and starts Spark each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lakeingest.errors import LakeingestError


class Refusals:
    """What was refused so far."""

    def __init__(self) -> None:
        self._errors: list[LakeingestError] = []

    @contextmanager
    def of_check(self) -> Iterator[None]:
        """Keep the error that ends the block; the next checks go on."""
        try:
            yield
        except LakeingestError as error:
            self._errors.append(error)

    def stop(self) -> None:
        """Stop if a check refused.

        Raises:
            LakeingestError: The error, or one of the first one's class that has all messages.
        """
        if not self._errors:
            return
        first = self._errors[0]
        if len(self._errors) == 1:
            raise first
        numbered = (f"{number}. {error}" for number, error in enumerate(self._errors, 1))
        message = f"{len(self._errors)} things are wrong.\n" + "\n".join(numbered)
        raise type(first)(message) from first
