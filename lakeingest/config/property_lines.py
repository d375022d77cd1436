r"""The two languages that ``.properties`` files are written in: the keys and values of a file.

Ours is Java's: a backslash at a line's end goes on in the next line, one within it takes away the
meaning of what follows, and three separators are known. Python's ``configparser`` reads a different
language.

The files of Hudi's streamer look the same and are not: Hudi reads them line by line, a backslash is
a letter like any other, and ``sasl.password=ab\cd`` has one. Read as Java's, that login fails
without a word about why. So its commands read them as Hudi does. One thing is not taken over: where
a line ends in a backslash Hudi takes it into the value and the next line for another key, which
nobody can have meant; the line goes on, as it does in the examples of Hudi's documentation.
Source: Hudi 1.2, ``DFSPropertiesConfiguration``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import javaproperties

from lakeingest.errors import ConfigError

# Java takes the backslash for that of an escaped blank.
_BLANKS_BEHIND_BACKSLASH = re.compile(r"(?<!\\)((?:\\\\)*\\)[ \t\f]+\r?$")
_GOES_ON = "\\"
_COMMENT = "#"


@dataclass(frozen=True)
class Line:
    """A key with its value.

    Attributes:
        number: Of the first line that it stands in.
        key: The key.
        text: The value; kept out of ``repr``, it may be a password.
    """

    number: int
    key: str
    text: str = field(repr=False)


Dialect = Callable[[str, str], tuple[list[Line], list[str]]]
"""From a file's text and its name, for messages, to its lines and what is wrong with it."""


def java_lines(text: str, origin: str) -> tuple[list[Line], list[str]]:
    """Read Java's language.

    A line that blanks behind its backslash keep from going on is continued all the same, and named
    as a problem: Java ends such a value there and takes the rest for another key. So nothing is
    said about that key, which nobody wrote.

    Raises:
        ConfigError: An escape is broken.
    """
    lines = text.split("\n")
    problems = []
    for first, element in _elements(text, origin):
        for number, line in enumerate(element.source.split("\n"), start=first):
            found = _BLANKS_BEHIND_BACKSLASH.search(line)
            if found is not None:
                lines[number - 1] = line[: found.end(1)]
                problems.append(
                    f"{origin}, line {number}: blanks behind the backslash at its end, so that it "
                    f"does not go on in the next line; remove the blanks"
                )
    whole = _elements("\n".join(lines), origin)
    return [Line(number, element.key, element.value) for number, element in whole], problems


def _elements(text: str, origin: str) -> list[tuple[int, javaproperties.KeyValue]]:
    line, found = 1, []
    try:
        for element in javaproperties.parse(text):
            if isinstance(element, javaproperties.KeyValue):
                found.append((line, element))
            line += element.source.count("\n")
    except javaproperties.InvalidUEscapeError:
        message = f"{origin}, line {line}: \\u must be followed by four hexadecimal digits"
        raise ConfigError(message) from None
    return found


def hudi_lines(text: str, origin: str) -> tuple[list[Line], list[str]]:
    """Read Hudi's language; nothing is wrong in it, what has no separator is passed over."""
    del origin
    found: list[Line] = []
    parts: list[str] = []
    first = 1
    for number, line in enumerate(text.split("\n"), start=1):
        if not parts:
            first = number
        part = line.strip()
        comment = not parts and part.startswith(_COMMENT)
        parts.append("" if comment else part.removesuffix(_GOES_ON))
        if not part.endswith(_GOES_ON) or comment:
            found += _hudi_line(first, " ".join(parts))
            parts = []
    return found + _hudi_line(first, " ".join(parts)), []


def _hudi_line(number: int, text: str) -> list[Line]:
    # As Hudi does: white space is one blank, and the first separator counts.
    line = " ".join(text.split())
    separator = "=" if "=" in line else " "
    key, found, value = line.partition(separator)
    return [Line(number, key.strip(), value.strip())] if found else []
