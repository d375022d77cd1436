"""Which settings Kafka's clients and Hudi know, to tell a misspelt one from one that is unusual.

Their settings are handed on by name, and either passes over a name that it does not know: a typing
error would be no setting at all, without a word. The names lie beside this module, one a line:
``kafka_names.txt`` those of the Java client 3.9 and of librdkafka, ``hudi_names.txt`` those in
Hudi 1.2 with the ones of its streamer. The lists decide nothing by themselves: interceptors and
later versions have settings of their own. Only an unknown name that is at most two letters away
from a known one counts as misspelt. A likeness in per cent is rejected: long names of one family
(``hoodie.streamer.source.kafka.…``) are alike in nearly all of their letters.
"""

from __future__ import annotations

import os.path
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from lakeingest.config.hudi_keys import HUDI_NAMES

_LETTERS = (1, 2)
# In a shorter name two letters are another word.
_SHORT = 8


@cache
def kafka_names() -> frozenset[str]:
    """Return the settings of Kafka's clients."""
    return _listed("kafka_names.txt")


@cache
def hudi_names() -> frozenset[str]:
    """Return the settings of Hudi and of its streamer."""
    return _listed("hudi_names.txt") | HUDI_NAMES


def misspelt(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that ``name`` was meant to be; null: it is known, or near to none.

    Args:
        name: What was written.
        known: What could have been meant.
    """
    candidates = sorted(known)
    if name in candidates:
        return None
    for letters in _LETTERS[: 1 if len(name) < _SHORT else None]:
        for candidate in candidates:
            if _within(name.lower(), candidate.lower(), letters):
                return candidate
    return None


def _within(one: str, other: str, letters: int) -> bool:
    """Tell whether so many letters added, left out or changed make one text of the other."""
    if abs(len(one) - len(other)) > letters:
        return False
    common = len(os.path.commonprefix((one, other)))
    one, other = one[common:], other[common:]
    if not one or not other:
        return len(one) + len(other) <= letters
    return letters > 0 and (
        _within(one[1:], other, letters - 1)
        or _within(one, other[1:], letters - 1)
        or _within(one[1:], other[1:], letters - 1)
    )


def _listed(file: str) -> frozenset[str]:
    text = files("lakeingest.config").joinpath(file).read_text(encoding="utf-8")
    return frozenset(text.split())
