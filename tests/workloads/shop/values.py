"""Values that break what is careless with text: quotes, line breaks, other scripts, NULL's names.

Left out, because no reader can tell them from what they look like: Debezium's own placeholder for
an unchanged value, ``\\N`` (NULL in the oracle's CSV), and U+0000, which PostgreSQL refuses.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")

ODD = (
    "",
    " ",
    "plain",
    "it's",
    'say "hi"',
    "comma, semicolon; tab\tend",
    "line\nbreak",
    "carriage\r\nreturn",
    "back\\slash and \\n that is none",
    "NULL",
    "null",
    "'quoted'",
    "100 % _ %s {} $1",
    '{"json": [1, null]}',
    "ünïcödé ß",
    "日本語の文字",
    "العربية",
    "emoji 🧺👩‍👩‍👧",
    "e\u0301 is not \u00e9",
    "\u00a0nbsp",
    "zero\u200bwidth \ufeffbom",
    "\u2028line separator",
    "\U0001f600" * 10,
    "trailing space ",
    "name[text]:'x' old-key: new-tuple:",
    "/* VARSTRING(80) meta=80 nullable=1 is_null=0 */",
    "### @1=1",
    "x" * 80,
)
"""At most 80 characters each, so that each fits every column of text."""


def odd_text(rng: random.Random) -> str:
    """Return one of the odd strings."""
    return rng.choice(ODD)


def maybe(rng: random.Random, value: Item) -> Item | None:
    """Return ``value``, or None one time in four."""
    return None if rng.random() < 0.25 else value


def long_text(rng: random.Random) -> str:
    """Return text that does not fit into a page beside others: 3,000 to 9,000 characters."""
    seed = rng.choice(("", "é", "日", "'", "\\", '"', "\n")) + f"{rng.getrandbits(24):06x}"
    return "-".join([seed] * (rng.randint(3_000, 9_000) // (len(seed) + 1)))


def moment(rng: random.Random, first_year: int = 1970) -> str:
    """Return a date and time with microseconds, without a zone, no later than 2037."""
    return (
        f"{rng.randint(first_year, 2037)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02} "
        f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}"
        f".{rng.randint(0, 999_999):06}"
    )


def decimal(rng: random.Random, digits: int, scale: int) -> str:
    """Return a decimal number as text, of either sign."""
    sign = rng.choice(("", "-"))
    number = rng.randrange(10 ** rng.randint(1, digits))
    whole, part = divmod(number, 10**scale)
    return f"{sign if number else ''}{whole}.{part:0{scale}}"


def json_text(rng: random.Random) -> str:
    """Return a JSON object as text."""
    return json.dumps(
        {"t": odd_text(rng), "v": rng.randint(-9, 99), "l": [None, True, 1.5]}, ensure_ascii=False
    )


def some(rng: random.Random, items: Sequence[Item], most: int) -> list[Item]:
    """Return up to ``most`` of ``items``, perhaps none, perhaps one twice."""
    return [rng.choice(items) for _ in range(rng.randint(0, most))]
