"""Positions: the one total order of events in a source's log (vocabulary for every stage)."""

from lakeingest.position.encoding import (
    COMPONENT_WIDTH,
    after,
    component,
    inherited,
    is_missing,
    missing_below,
    position,
    present_entries,
)

__all__ = [
    "COMPONENT_WIDTH",
    "after",
    "component",
    "inherited",
    "is_missing",
    "missing_below",
    "position",
    "present_entries",
]
