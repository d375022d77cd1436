"""The Java exceptions behind an error of PySpark's: their classes and their own texts.

Adapter: asked for in the JVM. Rejected: to search the text of the error. That of a failed task
quotes rows, and a row may hold any words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError, Py4JNetworkError

_DEEPEST = 32


@dataclass(frozen=True)
class Thrown:
    """A Java exception: the names of its class and of those above it, and its own text."""

    classes: tuple[str, ...]
    text: str

    @property
    def name(self) -> str:
        """Name of its class."""
        return self.classes[0]


def java_errors(error: BaseException) -> Iterator[Thrown]:
    """Yield the Java exceptions behind an error, outermost first."""
    at: BaseException | None = error
    while at is not None:
        java = getattr(at, "java_exception", None) or getattr(at, "_origin", None)
        yield from _with_causes(java)
        at = at.__cause__


def engine_is_gone(error: BaseException) -> bool:
    """Return whether the JVM did not answer: it was killed, or ran out of memory."""
    at: BaseException | None = error
    while at is not None:
        if isinstance(at, Py4JNetworkError | ConnectionRefusedError):
            return True
        at = at.__cause__ or at.__context__
    return False


def _with_causes(java: Any) -> Iterator[Thrown]:
    try:
        for _ in range(_DEEPEST):
            if java is None:
                return
            yield Thrown(tuple(_classes(java)), str(java.getMessage() or ""))
            java = java.getCause()
    except (Py4JError, ConnectionError):
        # The JVM is gone, and its exceptions with it.
        return


def _classes(java: Any) -> Iterator[str]:
    above = java.getClass()
    while above is not None:
        yield str(above.getName())
        above = above.getSuperclass()
