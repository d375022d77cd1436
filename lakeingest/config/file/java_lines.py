r"""Parse the language of lakeingest's ``.properties`` files: Java's.

A backslash at the end of a line continues it in the next line, a backslash within a line escapes
the next character, and there are three separators. Rejected: Python's ``configparser``, which reads
a different language.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import javaproperties

from lakeingest.errors import ConfigError

# Java reads such a backslash as the escape of the blank.
_BLANKS_BEHIND_BACKSLASH = re.compile(r"(?<!\\)((?:\\\\)*\\)[ \t\f]+\r?$")


@dataclass(frozen=True)
class Line:
    """A key with its value.

    Attributes:
        number: The number of the entry's first line.
        key: The key.
        text: The value; ``repr`` omits it, because it may be a password.
    """

    number: int
    key: str
    text: str = field(repr=False)


Dialect = Callable[[str, str], tuple[list[Line], list[str]]]
"""Function from a file's text and name (for messages) to its entries and its problems."""


def java_lines(text: str, origin: str) -> tuple[list[Line], list[str]]:
    """Parse Java's language.

    If blanks follow the backslash at the end of a line, Java does not continue the line: the value
    ends there, and the rest becomes another key. This function continues the line all the same and
    reports the blanks as a problem. So there is no message about that other key, which the user
    did not intend.

    Raises:
        ConfigError: A Unicode escape is malformed.
    """
    lines = text.split("\n")
    problems = []
    for first, element in _elements(text, origin):
        for number, line in enumerate(element.source.split("\n"), start=first):
            match = _BLANKS_BEHIND_BACKSLASH.search(line)
            if match is not None:
                lines[number - 1] = line[: match.end(1)]
                problems.append(
                    f"{origin}, line {number}: blanks behind the backslash at its end, so the line "
                    "does not continue; remove the blanks"
                )
    elements = _elements("\n".join(lines), origin)
    return [Line(number, element.key, element.value) for number, element in elements], problems


def _elements(text: str, origin: str) -> list[tuple[int, javaproperties.KeyValue]]:
    line, elements = 1, []
    try:
        for element in javaproperties.parse(text):
            if isinstance(element, javaproperties.KeyValue):
                elements.append((line, element))
            line += element.source.count("\n")
    except javaproperties.InvalidUEscapeError:
        message = f"{origin}, line {line}: \\u must be followed by four hexadecimal digits"
        raise ConfigError(message) from None
    return elements
