"""What is raised where two places in logs have no order."""

from __future__ import annotations


class IncomparableError(ValueError):
    """Neither place is before the other, or nothing tells which: an answer would be a guess."""
