"""Read the Java exceptions behind a PySpark error: their classes and their own texts.

Adapter: it reads the exceptions in the JVM. Rejected: to search the text of the PySpark error. The
text of a failed task quotes rows, and a row may contain any words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError, Py4JNetworkError

_DEEPEST = 32
_SQL = "java.sql.SQLException"


@dataclass(frozen=True)
class JavaError:
    """A Java exception.

    Attributes:
        classes: Names of its class and of its superclasses, in this order.
        text: Its own message, without those of its causes.
        sql_state: SQLSTATE of a ``java.sql.SQLException``; empty: it is none, or has none.
    """

    classes: tuple[str, ...]
    text: str
    sql_state: str = ""

    @property
    def name(self) -> str:
        """Return the name of its class."""
        return self.classes[0]


def java_errors(error: BaseException) -> Iterator[JavaError]:
    """Yield the Java exceptions behind an error, outermost first."""
    link: BaseException | None = error
    while link is not None:
        java = getattr(link, "java_exception", None) or getattr(link, "_origin", None)
        yield from _with_causes(java)
        link = link.__cause__


def engine_is_gone(error: BaseException) -> bool:
    """Return whether the JVM no longer answers, because it was killed or ran out of memory."""
    link: BaseException | None = error
    while link is not None:
        if isinstance(link, Py4JNetworkError | ConnectionRefusedError):
            return True
        link = link.__cause__ or link.__context__
    return False


def _with_causes(java: Any) -> Iterator[JavaError]:
    try:
        for _ in range(_DEEPEST):
            if java is None:
                return
            classes = tuple(_classes(java))
            state = java.getSQLState() if _SQL in classes else None
            yield JavaError(classes, str(java.getMessage() or ""), str(state or ""))
            java = java.getCause()
    except (Py4JError, ConnectionError):
        # The JVM is gone, so its exceptions cannot be read.
        return


def _classes(java: Any) -> Iterator[str]:
    java_class = java.getClass()
    while java_class is not None:
        yield str(java_class.getName())
        java_class = java_class.getSuperclass()
