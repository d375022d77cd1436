"""List the settings of Kafka's clients and Hudi, to tell a misspelt name from an unusual one.

lakeingest passes their settings on by name, and both ignore an unknown name: a misspelt setting
would silently have no effect. The names are in files beside this module, one a line.
``kafka_names.txt`` has those of the Java client 3.9 and of librdkafka, ``hudi_names.txt`` those of
Hudi 1.2 and its streamer. The lists alone decide nothing: interceptors and later versions have
further settings. An unknown name counts as misspelt only if it differs from a known one by at most
two letters. Rejected: a similarity in per cent; long names of one family
(``hoodie.streamer.source.kafka.…``) have nearly all letters in common.
"""

from __future__ import annotations

import os.path
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from lakeingest.config.hudi_keys import HUDI_NAMES

_LETTERS = (1, 2)
# In a shorter name, two other letters make another word.
_SHORT = 8


@cache
def kafka_names() -> frozenset[str]:
    """Return the names of the Kafka clients' settings."""
    return _read_names("kafka_names.txt")


@cache
def hudi_names() -> frozenset[str]:
    """Return the names of the settings of Hudi and its streamer."""
    return _read_names("hudi_names.txt") | HUDI_NAMES


def misspelt(name: str, known_names: Iterable[str]) -> str | None:
    """Return the known name that the user probably meant.

    ``None``: the name is known, or near to no known name.

    Args:
        name: The user's name.
        known_names: The names among which to search.
    """
    candidates = sorted(known_names)
    if name in candidates:
        return None
    for letters in _LETTERS[: 1 if len(name) < _SHORT else None]:
        for candidate in candidates:
            if _differ_by_at_most(name.lower(), candidate.lower(), letters):
                return candidate
    return None


def _differ_by_at_most(one: str, other: str, letters: int) -> bool:
    """Return whether adding, removing or changing at most ``letters`` letters makes them equal."""
    if abs(len(one) - len(other)) > letters:
        return False
    common = len(os.path.commonprefix((one, other)))
    one, other = one[common:], other[common:]
    if not one or not other:
        return len(one) + len(other) <= letters
    return letters > 0 and (
        _differ_by_at_most(one[1:], other, letters - 1)
        or _differ_by_at_most(one, other[1:], letters - 1)
        or _differ_by_at_most(one[1:], other[1:], letters - 1)
    )


def _read_names(file: str) -> frozenset[str]:
    text = files("lakeingest.config").joinpath(file).read_text(encoding="utf-8")
    return frozenset(text.split())
