"""The partition columns of a table: as declared when it is made, its own from then on."""

from __future__ import annotations

from lakeingest.errors import ConfigError
from lakeingest.plan.spec import TableSpec
from lakeingest.sink.contract import TableState


def resolve_partition(
    table: TableSpec, declared: tuple[str, ...], state: TableState | None
) -> tuple[str, ...]:
    """Return the partition columns: the table's own, or, of a new one, those declared.

    Raises:
        ConfigError: They differ, or are none of the table's columns.
    """
    collection, setting = table.collection, f"lakeingest.table.{table.collection}.partition"
    kept = state.note.partition if state and state.note.key else None
    if kept is not None and declared and declared != kept:
        message = (
            f"Table '{collection}' is partitioned by ({', '.join(kept)}) in the lake, but "
            f"{setting} says ({', '.join(declared)}). Partitions cannot change in place: load the "
            "table anew."
        )
        raise ConfigError(message)
    absent = [name for name in declared if name not in table.names()]
    if absent:
        message = (
            f"Partition column {', '.join(absent)} of table '{collection}' is not among its "
            f"columns ({', '.join(sorted(table.names()))}). Correct {setting}."
        )
        raise ConfigError(message)
    return declared if kept is None else kept
