"""Rows of a table against what the cases of arrival must leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.vectors.arrival import Vector

Rows = Mapping[int, Mapping[int, Mapping[str, Any]]]
"""Live rows by case and key."""


def wrong(rows_by_case: Rows, vectors: Sequence[Vector]) -> list[str]:
    """Return the cases of which the table has other rows than it must."""
    differing = []
    for case, vector in enumerate(vectors):
        rows = rows_by_case.get(case, {})
        seen = {key: {name: rows[key][name] for name in vector.rows.get(key, {})} for key in rows}
        if seen != vector.rows:
            differing.append(f"{vector.number} ({vector.says}): {seen}, must be {vector.rows}")
    return differing
