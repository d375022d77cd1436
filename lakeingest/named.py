"""Refer to a column by its exact name, whatever characters the name has.

A source may have a column ``address.city``, and Delta accepts the name. ``F.col`` and SQL read the
dot as "field of" instead. So every name that comes from a source goes through this module; names
that lakeingest chooses need not.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F


def quoted(name: str) -> str:
    """Return ``name`` in backticks, as Spark SQL expects it."""
    return "`" + name.replace("`", "``") + "`"


def named(name: str) -> Column:
    """Return the column of that name."""
    return F.col(quoted(name))


def all_named(names: Iterable[str]) -> list[Column]:
    """Return the columns of those names."""
    return [named(name) for name in names]
