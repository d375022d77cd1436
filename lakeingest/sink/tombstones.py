"""Positions of deleted rows in a side table, for sinks that remove the rows (``hard`` deletes).

The side table is committed **before** the table: a crash between the two leaves a tombstone whose
delete comes again, while the other order would leave a delete that an older change could undo.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakeingest.frame_schemas import MetadataColumns
from lakeingest.named import all_named
from lakeingest.sink.contract import Changeset, TableState

SUFFIX = "__tombstones"
"""Behind the folder of the table, so beside the table wherever it lies."""


def buried_matters(changeset: Changeset, previous: TableState | None) -> bool:
    """Tell whether a payload may be older than a tombstone: only a late batch can hold one."""
    if previous is None or not previous.note.tombstones:
        return False
    return changeset.low <= previous.note.high


def buried(changeset: Changeset, names: MetadataColumns) -> DataFrame:
    """Return the tombstones of a changeset: key columns and position."""
    dead = changeset.frame.where(F.col(names.deleted))
    return dead.select(*all_named(changeset.key), names.position)


def without_buried(changeset: Changeset, graves: DataFrame, names: MetadataColumns) -> Changeset:
    """Drop payloads that are older than a tombstone.

    Args:
        changeset: The payloads.
        graves: The side table.
        names: Names of the metadata columns.
    """
    newest = graves.groupBy(*all_named(changeset.key)).agg(
        F.max(names.position).alias("_buried_at")
    )
    position, buried_at = F.col(names.position), F.col("_buried_at")
    # The delete itself comes again after a crash between its tombstone and the table.
    same = F.col(names.deleted) & (position == buried_at)
    alive = buried_at.isNull() | (position > buried_at) | same
    frame = changeset.frame.join(newest, list(changeset.key), "left").where(alive)
    return replace(changeset, frame=frame.select(*all_named(changeset.frame.columns)))
