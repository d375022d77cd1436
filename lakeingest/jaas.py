"""The options of a JAAS line: ``PlainLoginModule required username="app" password='…';``.

Two places read them: the Kafka source, for the client that knows no JAAS, and the configuration,
which must know the password in it to keep it out of messages. Java takes a value in double quotes,
in single quotes, or bare up to the next blank; a reader of one form alone would let the others
through.
"""

from __future__ import annotations

import re

_OPTION = re.compile(r"""([\w.-]+)\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s;]+)""")


def jaas_options(text: str) -> list[tuple[str, str]]:
    """Return names and values of the options in a JAAS line, in order; values as they stand."""
    return _OPTION.findall(text)


def unquoted(value: str) -> str:
    """Return a value without the quotes around it, its escapes resolved."""
    if value[:1] in {'"', "'"}:
        return re.sub(r"\\(.)", r"\1", value[1:-1])
    return value
