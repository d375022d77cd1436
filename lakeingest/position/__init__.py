"""Positions: the one total order of events in a source's log (vocabulary for every stage).

Stages work with the encoded form (``encoding.py``, ``epochs.py``). ``tests/position`` compares it
with the same places as exact values.
"""

from lakeingest.position.encoding import (
    COMMIT_WIDTH,
    COMPONENT_WIDTH,
    EPOCH_WIDTH,
    after,
    begins_at_zero,
    component,
    inherited,
    is_missing,
    missing_below,
    position,
    present_entries,
)
from lakeingest.position.epochs import Epoch

__all__ = [
    "COMMIT_WIDTH",
    "COMPONENT_WIDTH",
    "EPOCH_WIDTH",
    "Epoch",
    "after",
    "begins_at_zero",
    "component",
    "inherited",
    "is_missing",
    "missing_below",
    "position",
    "present_entries",
]
