"""Find the name that a user probably meant, and know the names of other programs' settings.

lakeingest passes the settings of Kafka's clients and of Hudi on by name, and both ignore an unknown
name: a misspelt setting would silently have no effect. ``kafka/names.txt`` lists the settings of
the Java client 3.9 and of librdkafka, ``hudi/names.txt`` those of Hudi 1.2 and its streamer, one a
line. The lists alone decide nothing: interceptors and later versions have further settings. An
unknown name counts as misspelt only if it differs from a known one by at most two letters.
Rejected: a similarity in per cent; long names of one family (``hoodie.streamer.source.kafka.…``)
have nearly all letters in common. It is good enough for short names of lakeingest (``nearest``).
"""

from __future__ import annotations

import difflib
import os.path
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

_LETTERS = (1, 2)
# In a shorter name, two other letters make another word.
_SHORT = 8


def nearest(name: str, candidates: Iterable[str], likeness: float = 0.6) -> str | None:
    """Return the candidate that the user most likely meant; ``None``: no candidate is near.

    Args:
        name: The user's name.
        candidates: The valid names.
        likeness: Ratio of equal characters, 0 to 1, from which a candidate counts as near.
    """
    # Compare in lower case: a wrong case is the most common misspelling.
    by_lower = {candidate.lower(): candidate for candidate in candidates}
    matches = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=likeness)
    return by_lower[matches[0]] if matches else None


@cache
def names_of(program: str) -> frozenset[str]:
    """Return the names of the settings of a program: ``kafka`` or ``hudi``."""
    path = files("lakeingest.config") / program / "names.txt"
    return frozenset(path.read_text(encoding="utf-8").split())


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
