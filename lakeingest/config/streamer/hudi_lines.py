r"""Parse the language of Hudi Streamer's ``.properties`` files, which only looks like Java's.

Hudi reads its files line by line, and a backslash is an ordinary character:
``sasl.password=ab\cd`` contains one. If Java's rules were used, that login would fail without an
explanation. So the streamer's commands read the files as Hudi does, with one exception. If a line
ends in a backslash, Hudi keeps the backslash in the value and reads the next line as another key,
which no user can have meant. Here the line continues, as in the examples of Hudi's documentation.
Source: Hudi 1.2, ``DFSPropertiesConfiguration``.
"""

from __future__ import annotations

from lakeingest.config.file.java_lines import Line

_GOES_ON = "\\"
_COMMENT = "#"


def hudi_lines(text: str, origin: str) -> tuple[list[Line], list[str]]:
    """Parse Hudi's language; it has no problems: skip a line without a separator."""
    del origin
    lines: list[Line] = []
    parts: list[str] = []
    first = 1
    for number, line in enumerate(text.split("\n"), start=1):
        if not parts:
            first = number
        part = line.strip()
        comment = not parts and part.startswith(_COMMENT)
        parts.append("" if comment else part.removesuffix(_GOES_ON))
        if not part.endswith(_GOES_ON) or comment:
            lines += _hudi_line(first, " ".join(parts))
            parts = []
    return lines + _hudi_line(first, " ".join(parts)), []


def _hudi_line(number: int, text: str) -> list[Line]:
    # As in Hudi: any white space equals one blank, and the first separator counts.
    line = " ".join(text.split())
    separator = "=" if "=" in line else " "
    key, has_separator, value = line.partition(separator)
    return [Line(number, key.strip(), value.strip())] if has_separator else []
