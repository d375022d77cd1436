"""Resolve a table's partition columns: declared when the table is made, fixed from then on."""

from __future__ import annotations

from lakeingest.errors import ConfigError, load_anew
from lakeingest.plan.spec import TableSpec
from lakeingest.sink.contract import TableState


def resolve_partition(
    table: TableSpec, declared: tuple[str, ...], state: TableState | None
) -> tuple[str, ...]:
    """Return the partition columns: those of the existing table, or the declared ones of a new one.

    Raises:
        ConfigError: The two differ, or a declared column is not a column of the table.
    """
    collection, setting = table.collection, f"lakeingest.table.{table.collection}.partition"
    stored = state.note.partition if state and state.note.key else None
    if stored is not None and declared and declared != stored:
        message = (
            f"Table '{collection}' is partitioned by ({', '.join(stored)}) in the lake, but "
            f"{setting} says ({', '.join(declared)}). Partitions cannot change in place: "
            f"{load_anew(collection)}."
        )
        raise ConfigError(message)
    absent = [name for name in declared if name not in table.names()]
    if absent:
        message = (
            f"Partition column {', '.join(absent)} of table '{collection}' is not among its "
            f"columns ({', '.join(sorted(table.names()))}). Correct {setting}."
        )
        raise ConfigError(message)
    return declared if stored is None else stored
