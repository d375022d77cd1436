"""Keep the positions of deleted rows in a side table, for sinks that remove rows (``hard``).

The sink commits the side table **before** the table. A crash between the two commits leaves a
tombstone whose delete is redelivered. In the other order it would leave a delete that an older
change could undo.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakeingest.engine.few_rows import in_session
from lakeingest.frame_schemas import OURS, MetadataColumns
from lakeingest.named import all_named
from lakeingest.sink.contract import Changeset, TableState

_DELETED_AT = f"{OURS}deleted_at"


def may_be_below_tombstones(changeset: Changeset, previous: TableState | None) -> bool:
    """Return whether a payload may be older than a tombstone.

    Only a batch whose lowest position is at or below the table's highest one can have such a
    payload.
    """
    if previous is None or not previous.note.tombstones:
        return False
    return changeset.low <= previous.note.high


def tombstones_of(changeset: Changeset, names: MetadataColumns) -> DataFrame:
    """Return the tombstones of a changeset: key columns and position."""
    deletes = changeset.frame.where(F.col(names.deleted))
    return deletes.select(*all_named(changeset.key), names.position)


def above_tombstones(
    changeset: Changeset, tombstones: DataFrame, names: MetadataColumns
) -> Changeset:
    """Drop payloads that are older than a tombstone.

    Args:
        changeset: The payloads.
        tombstones: Rows of the side table.
        names: Names of the metadata columns.
    """
    newest = tombstones.groupBy(*all_named(changeset.key)).agg(
        F.max(names.position).alias(_DELETED_AT)
    )
    position, deleted_at = F.col(names.position), F.col(_DELETED_AT)
    # After a crash between the two commits, the tombstone's own delete is redelivered.
    same_delete = F.col(names.deleted) & (position == deleted_at)
    applies = deleted_at.isNull() | (position > deleted_at) | same_delete
    # There may be many tombstones, however few the payloads are.
    payloads = in_session(changeset.frame, tombstones.sparkSession)
    frame = payloads.join(newest, list(changeset.key), "left").where(applies)
    return replace(changeset, frame=frame.select(*all_named(changeset.frame.columns)))
