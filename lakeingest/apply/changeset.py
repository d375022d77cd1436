"""One table's part of a batch: its merge payloads, persisted, with moved values filled in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

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


@contextmanager
def persisted(frame: DataFrame) -> Iterator[DataFrame]:
    """Keep a frame in memory, spilling to disk, while the block runs."""
    kept = frame.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield kept
    finally:
        kept.unpersist()


@contextmanager
def changeset(
    changes: DataFrame,
    shares: Sequence[Share],
    table: TableSpec,
    spec: PipelineSpec,
    floor: str,
    lake: DataFrame | None,
) -> Iterator[tuple[Changeset, int]]:
    """Fold a table's changes of one batch and hold the result while it is applied.

    Args:
        changes: The table's changes in the batch (``shape.CHANGE``).
        shares: Their summaries.
        table: Columns and key.
        spec: Pipeline settings.
        floor: Position of the newest truncate so far, this batch's included; empty: none.
        lake: The table as it is now, for values that moved to another key; null if it is new.

    Yields:
        The changeset and the number of its payloads.
    """
    masked = any(share.masked for share in shares)
    rows = rows_above(changes, floor)
    if masked or table.key_in_value:
        decoded = decoded_rows(rows, table, spec)
        with persisted(decoded) as kept:
            payload = payload_of_partial_rows(kept, table, spec)
            if any(share.moved for share in shares):
                with persisted(payload) as unfilled:
                    filled = _with_moved(unfilled, kept, table, spec, lake)
                    yield from _held(filled, shares, table, spec, masked)
            else:
                yield from _held(payload, shares, table, spec, masked)
    else:
        payload = payload_of_whole_rows(rows, table, spec)
        yield from _held(payload, shares, table, spec, masked)


def _held(
    payload: DataFrame,
    shares: Sequence[Share],
    table: TableSpec,
    spec: PipelineSpec,
    masked: bool,
) -> Iterator[tuple[Changeset, int]]:
    with persisted(payload) as frame:
        first = F.col("_first_op").isin(*_INSERTS)
        counted = frame.agg(F.count("*").alias("all"), F.count_if(first).alias("inserts")).first()
        total, inserts = (counted["all"], counted["inserts"]) if counted else (0, 0)
        yield (
            Changeset(
                frame=frame,
                columns=table.names(),
                key=table.key,
                fillable=table.fillable(spec.encodings),
                floor=max((share.floor for share in shares), default=""),
                low=min((share.low for share in shares if share.low), default=""),
                high=max((max(share.high, share.floor) for share in shares), default=""),
                inserts_only=total == inserts,
                masked=masked,
                deletes=any(share.deletes for share in shares),
            ),
            total,
        )


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
        pending = moves.hop(pending, decoded, fillable).localCheckpoint(eager=True)
        ended = ended.unionByName(pending.where(F.col("ended")))
        pending = pending.where(~F.col("ended"))
        if pending.isEmpty():
            break
    empty = payload.limit(0) if lake is None else lake
    resolved = moves.from_table(ended, empty, table.key, fillable, spec.names)
    return moves.with_moved(payload, resolved, table.key, fillable, spec.names)
