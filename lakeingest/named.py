"""Columns by exactly their name, whatever is in it.

A source may call a column ``address.city``, and Delta takes that. ``F.col`` and SQL read the dot as
"field of" instead, so a name that comes from a source goes through here; names of our own need not.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F


def quoted(name: str) -> str:
    """Return ``name`` as Spark SQL takes it."""
    return "`" + name.replace("`", "``") + "`"


def named(name: str) -> Column:
    """Return the column of that name."""
    return F.col(quoted(name))


def all_named(names: Iterable[str]) -> list[Column]:
    """Return the columns of those names."""
    return [named(name) for name in names]
