"""Parse the options of a JAAS line: ``PlainLoginModule required username="app" password='…';``.

Two modules read them. The Kafka source translates them for librdkafka, which knows no JAAS. The
configuration finds the password, to keep it out of messages. Java accepts a value in double quotes,
in single quotes, or bare up to the next blank. A parser of only one form would miss the passwords
in the other forms.
"""

from __future__ import annotations

import re

_OPTION = re.compile(r"""([\w.-]+)\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s;]+)""")


def jaas_options(text: str) -> list[tuple[str, str]]:
    """Return names and values of a JAAS line's options, in order; values keep their quotes."""
    return _OPTION.findall(text)


def unquoted(value: str) -> str:
    """Return a value without its quotes and with its escapes resolved."""
    if value[:1] in {'"', "'"}:
        return re.sub(r"\\(.)", r"\1", value[1:-1])
    return value
