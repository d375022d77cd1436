"""See from sampled values in which modes a connector writes them, given the source's types.

JSON without schemas does not name the modes, and with a wrong one values are read as other values:
milliseconds as microseconds, hexadecimal digits as base64. So a mode is taken from values that only
it can have written. Where some values could come of two modes and none decides, the columns are
left to the user.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

MILLIS, MICROS, NANOS = range(10**11, 10**14), range(10**14, 10**17), range(10**17, 10**20)
"""Numbers of the moments between 1973 and 5138, in each unit of time."""

DECIMAL_TEXT = r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|[+-]?Infinity|NaN"
"""Matches a decimal under ``decimal.handling.mode=string``."""

HEX_TEXT = "(?:[0-9a-f]{2})*"
"""Matches bytes under ``binary.handling.mode=hex``."""

_ENOUGH = 16
"""Characters of all values that cannot be base64 by chance."""


class Kind(Enum):
    """Kinds of values that a mode decides how to write."""

    DECIMAL = "decimal.handling.mode"
    BINARY = "binary.handling.mode"
    TIME = "time.precision.mode"


UNDECIDED = ""
"""Values are there, and none of them decides."""


def seen_modes(columns: Iterable[tuple[Kind, Sequence[object]]]) -> Mapping[Kind, str]:
    """Return the mode that the values of a connector's columns show.

    Args:
        columns: Per column its kind and its values, as JSON has them, without nulls. Of times only
            those that have more digits than milliseconds.

    Returns:
        A mode or ``UNDECIDED``; a kind without values is left out.
    """
    values: dict[Kind, list[object]] = {}
    for kind, own in columns:
        values.setdefault(kind, []).extend(own)
    modes = {Kind.DECIMAL: _of_decimals, Kind.BINARY: _of_octets, Kind.TIME: _of_times}
    return {kind: modes[kind](samples) for kind, samples in values.items() if samples}


def _of_decimals(values: Sequence[object]) -> str:
    texts = [value for value in values if isinstance(value, str)]
    if not texts:
        # Octets of variable scale are structs, in the mode precise alone.
        return "precise" if all(isinstance(value, dict) for value in values) else "double"
    if not all(re.fullmatch(DECIMAL_TEXT, text) for text in texts):
        return "precise"
    is_no_base64 = any("." in text or text.startswith("-") or len(text) % 4 for text in texts)
    return "string" if is_no_base64 or len("".join(texts)) >= _ENOUGH else UNDECIDED


def _of_octets(values: Sequence[object]) -> str:
    texts = [value for value in values if isinstance(value, str) and value]
    if any("-" in text or "_" in text for text in texts):
        return "base64-url-safe"
    if not all(re.fullmatch(HEX_TEXT, text) for text in texts):
        return "bytes"
    is_no_base64 = any(len(text) % 4 for text in texts)
    return "hex" if is_no_base64 or len("".join(texts)) >= _ENOUGH else UNDECIDED


def _of_times(values: Sequence[object]) -> str:
    if all(isinstance(value, str) for value in values):
        return "isostring"
    if all(isinstance(value, dict) for value in values):
        return "structured"
    numbers = [abs(value) for value in values if isinstance(value, int)]
    for mode, span in (("adaptive", MICROS), ("connect", MILLIS), ("nanoseconds", NANOS)):
        if any(number in span for number in numbers):
            return mode
    return UNDECIDED
