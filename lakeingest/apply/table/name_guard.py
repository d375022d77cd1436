"""Refuse a table whose column names its lake cannot hold, or that lacks a column of its key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from lakeingest.apply.table.key import Key
from lakeingest.decode.columns import SourceColumn
from lakeingest.errors import ConfigError
from lakeingest.frame_schemas import MetadataColumns

_REFUSED_BY_DELTA = frozenset(" ,;{}()\n\t=")
"""Characters that Delta refuses in a column name without column mapping.

Source: Delta's ``DeltaColumnMapping`` and Parquet's own rule.
"""


def refuse_names(
    collection: str, columns: Sequence[SourceColumn], key: Key, names: MetadataColumns
) -> None:
    """Raise an error for columns with names that the lake cannot hold, or that lakeingest uses.

    Args:
        collection: The table.
        columns: Its columns.
        key: Its key; one of ours is no column of the source.
        names: The columns of ours.

    Raises:
        ConfigError: There is such a column, or a column of the key is missing.
    """
    ours_only = key.keyless is not None
    column_names = {column.name for column in columns}
    absent = [] if ours_only else [name for name in key.columns if name not in column_names]
    if absent:
        message = (
            f"Key column {', '.join(absent)} of table '{collection}' is not among its columns "
            f"({', '.join(sorted(column_names))}). Correct lakeingest.table.{collection}.key or "
            ".schema."
        )
        raise ConfigError(message)
    unusual = sorted(name for name in column_names if _REFUSED_BY_DELTA & set(name))
    if unusual:
        message = (
            f"Table '{collection}' has a column named '{unusual[0]}'; Delta takes no name with a "
            "blank or one of ,;{}()= in it. Rename it on the way (Connect's ReplaceField "
            "transform) or leave it out (the connector's column.exclude.list)."
        )
        raise ConfigError(message)
    event_names = _clashes(column_names, names.event)
    if event_names:
        message = (
            f"Table '{collection}' has a column named {', '.join(event_names)}, which "
            "lakeingest.metadata.columns=hudi writes itself. Set lakeingest.metadata.columns=own, "
            "or rename the column on the way (Connect's ReplaceField transform)."
        )
        raise ConfigError(message)
    # Also those that this table does not have: readers leave out columns of these names.
    ours = _clashes(column_names, (*names.names, *names.keyless, names.record_key))
    if ours:
        message = (
            f"Table '{collection}' has a column named {', '.join(ours)}, which lakeingest uses "
            "itself. Rename it on the way (Connect's ReplaceField transform), or set "
            "lakeingest.metadata.prefix to another prefix: before a lake's first run, so where the "
            "lake is begun also another lakeingest.target.path."
        )
        raise ConfigError(message)


def _clashes(names: Collection[str], reserved: Collection[str]) -> list[str]:
    """Return the names that Spark cannot tell from a reserved name: it ignores case."""
    lower = {name.lower() for name in reserved}
    return sorted(name for name in names if name.lower() in lower)


def refuse_alike(collection: str, names: Collection[str]) -> None:
    """Raise an error for columns, of the source or of the lake, that differ by case only."""
    alike = Counter(name.lower() for name in names)
    twice = sorted(name for name in names if alike[name.lower()] > 1)
    if twice:
        message = (
            f"Table '{collection}' has columns that differ by case only: {', '.join(twice)}. "
            "Spark and its tables cannot tell them apart. Rename one on the way (Connect's "
            "ReplaceField transform; a column that was renamed at the source, to the name that it "
            "has in the lake) or leave it out (the connector's column.exclude.list)."
        )
        raise ConfigError(message)
