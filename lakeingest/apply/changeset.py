"""One table's part of a batch: its merge payloads, held, with moved values filled in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakeingest.apply.held import held
from lakeingest.apply.share import Share
from lakeingest.payload import moves
from lakeingest.plan.spec import PipelineSpec, TableSpec
from lakeingest.plan.table import (
    decoded_rows,
    payload_of_partial_rows,
    payload_of_whole_rows,
    rows_above,
)
from lakeingest.sink.contract import Changeset

_INSERTS = ("c", "r")


def changeset(
    changes: DataFrame,
    shares: Sequence[Share],
    table: TableSpec,
    spec: PipelineSpec,
    floor: str,
    lake: DataFrame | None,
) -> tuple[Changeset, int]:
    """Fold a table's changes of one batch.

    Args:
        changes: The table's changes in the batch (``shape.CHANGE``).
        shares: Their summaries.
        table: Columns and key.
        spec: Pipeline settings.
        floor: Position of the newest truncate so far, this batch's included; empty: none.
        lake: The table as it is now, for values that moved to another key; null if it is new.

    Returns:
        The changeset, its rows held, and the number of its payloads.
    """
    masked = any(share.masked for share in shares)
    rows = rows_above(changes, floor)
    if not (masked or table.key_in_value):
        return _counted(payload_of_whole_rows(rows, table, spec), shares, table, spec, masked)
    moved = any(share.moved for share in shares)
    decoded = decoded_rows(rows, table, spec)
    if not moved:
        payload = payload_of_partial_rows(decoded, table, spec)
        return _counted(payload, shares, table, spec, masked)
    decoded = held(decoded)
    payload = held(payload_of_partial_rows(decoded, table, spec))
    return _counted(_with_moved(payload, decoded, table, spec, lake), shares, table, spec, masked)


def _counted(
    payload: DataFrame,
    shares: Sequence[Share],
    table: TableSpec,
    spec: PipelineSpec,
    masked: bool,
) -> tuple[Changeset, int]:
    frame = held(payload)
    first = F.col("_first_op").isin(*_INSERTS)
    leading = table.key[0]
    row = frame.agg(
        F.count("*").alias("all"),
        F.count_if(first).alias("inserts"),
        F.min(leading).alias("low"),
        F.max(leading).alias("high"),
    ).first()
    counted: dict[str, Any] = row.asDict() if row else {}
    total = int(counted.get("all", 0))
    changes = Changeset(
        frame=frame,
        columns=table.names(),
        key=table.key,
        fillable=table.fillable(spec.encodings),
        floor=max((share.floor for share in shares), default=""),
        low=min((share.low for share in shares if share.low), default=""),
        high=max((max(share.high, share.floor) for share in shares), default=""),
        inserts_only=total == counted.get("inserts"),
        key_range=(counted.get("low"), counted.get("high")),
        masked=masked,
        deletes=any(share.deletes for share in shares),
    )
    return changes, total


def _with_moved(
    payload: DataFrame,
    decoded: DataFrame,
    table: TableSpec,
    spec: PipelineSpec,
    lake: DataFrame | None,
) -> DataFrame:
    """Follow primary-key changes until nothing more of them is in the batch, then to the lake."""
    fillable = table.fillable(spec.encodings)
    pending = moves.links(payload, table.key, fillable)
    ended = pending.where(F.col("ended"))
    while True:
        pending = held(moves.hop(pending, decoded, fillable))
        ended = ended.unionByName(pending.where(F.col("ended")))
        pending = pending.where(~F.col("ended"))
        if pending.isEmpty():
            break
    empty = payload.limit(0) if lake is None else lake
    resolved = moves.from_table(ended, empty, table.key, fillable, spec.names)
    return moves.with_moved(payload, resolved, table.key, fillable, spec.names)
