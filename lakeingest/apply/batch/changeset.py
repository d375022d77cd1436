"""One table's part of a batch: its merge payloads, with moved values filled in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakeingest.apply.batch.latest_per_key import LatestPerKey, key_counts
from lakeingest.apply.batch_stats import BatchStats
from lakeingest.decode.defaults import default_value
from lakeingest.engine.local_checkpoint import local_checkpoint
from lakeingest.event_columns import GONE, OPERATION
from lakeingest.frame_schemas import FIRST_OP
from lakeingest.payload import deferred_key_order, key_changes
from lakeingest.payload.key_lookup import rows_of
from lakeingest.payload.net_zero import kept_rows, with_kept_rows
from lakeingest.plan.spec import Keyless, PipelineSpec, TableSpec
from lakeingest.plan.table import (
    decoded_rows,
    keys_passed,
    old_keys_told,
    payload_of_latest,
    payload_of_partial_rows,
    payload_of_whole_rows,
    rows_above,
)
from lakeingest.sink.contract import Changeset


def folds_undecoded(batch_stats: Sequence[BatchStats], table: TableSpec, floor: str) -> bool:
    """Tell whether the table's winners can be found without decoding a row.

    Not where a value is left out, where keys are not bare, or where a truncate sweeps rows away.
    """
    masked = table.partial or any(stats.masked for stats in batch_stats)
    swept = any(stats.low <= floor for stats in batch_stats if stats.low)
    return not (masked or table.key_in_value or not table.reader.bare_keys or swept)


def rows_pass(rows: DataFrame, batch_stats: Sequence[BatchStats]) -> bool:
    """Return whether rows may exchange record keys (``payload/deferred_key_order.py``)."""
    return any(stats.relocated for stats in batch_stats) and not keys_passed(rows).isEmpty()


def asks_lake(batch_stats: Sequence[BatchStats], table: TableSpec) -> bool:
    """Tell whether a changeset that is not folded undecoded may have to ask the table."""
    if table.key_in_value:
        return table.keyless is not Keyless.APPEND
    return any(stats.moved or stats.relocated for stats in batch_stats)


def changeset(
    changes: DataFrame,
    batch_stats: Sequence[BatchStats],
    table: TableSpec,
    spec: PipelineSpec,
    floor: str,
    lake: DataFrame | None,
    latest: LatestPerKey | None = None,
    graves: str = "",
) -> tuple[Changeset, int]:
    """Fold a table's changes of one batch.

    Args:
        changes: The table's changes in the batch (``CHANGE``).
        batch_stats: Their summaries.
        table: Columns and key.
        spec: Pipeline settings.
        floor: Position of the newest truncate so far, this batch's included; empty: none.
        lake: The table as it is now, for rows that moved to another key; null if it is new, or
            if ``asks_lake`` does not.
        latest: The batch's winners, where ``folds_undecoded`` and they are known.
        graves: See ``passing.in_order``.

    Returns:
        The changeset and the number of its payloads.
    """
    if latest is not None:
        payload = payload_of_latest(latest.of(table.collection), table, spec)
        keys = latest.keys.get(table.collection, 0)
        inserted = latest.inserted.get(table.collection, 0)
        return _changeset(payload, batch_stats, table, spec, keys, inserted), keys
    masked = table.partial or any(stats.masked for stats in batch_stats)
    rows = rows_above(changes, floor)
    if masked or table.key_in_value or any(stats.relocated for stats in batch_stats):
        payload = _partial(rows, batch_stats, table, spec, floor, lake, graves)
    else:
        payload = payload_of_whole_rows(rows, table, spec)
    frame = local_checkpoint(payload)
    gone = F.count_if(F.col(spec.names.deleted)).alias("gone")
    row = frame.agg(*key_counts(FIRST_OP), gone).first()
    keys, inserted = (int(row["keys"]), int(row["inserted"])) if row else (0, 0)
    made = _changeset(frame, batch_stats, table, spec, keys, inserted)
    # An update may have been taken apart into a delete and a create (``plan/table.py``).
    return replace(made, deletes=made.deletes or bool(row and row["gone"])), keys


def _partial(
    rows: DataFrame,
    batch_stats: Sequence[BatchStats],
    table: TableSpec,
    spec: PipelineSpec,
    floor: str,
    lake: DataFrame | None,
    graves: str,
) -> DataFrame:
    moved = any(stats.moved for stats in batch_stats)
    decoded = decoded_rows(rows, table, spec)
    if moved and (not old_keys_told(table) or any(stats.unpaired for stats in batch_stats)):
        decoded = key_changes.paired(decoded)
    misplaced = table.keyless is Keyless.FULL_ROW or (spec.whole and asks_lake(batch_stats, table))
    if moved or misplaced:
        decoded = local_checkpoint(decoded)
    placed = _in_place(decoded, table, spec, floor, lake, graves) if misplaced else decoded
    if not moved:
        return payload_of_partial_rows(placed, table, spec)
    if placed is not decoded:
        placed = local_checkpoint(placed)
    payload = local_checkpoint(payload_of_partial_rows(placed, table, spec))
    return _with_moved(payload, placed, table, spec, lake)


def _in_place(
    decoded: DataFrame,
    table: TableSpec,
    spec: PipelineSpec,
    floor: str,
    lake: DataFrame | None,
    graves: str,
) -> DataFrame:
    """Give changes of one row the order that their positions alone do not tell.

    Returns:
        ``decoded`` itself, which is held, where their positions tell it.
    """
    if table.keyless is Keyless.FULL_ROW:
        if kept_rows(decoded).isEmpty():
            return decoded
        return with_kept_rows(decoded, lake, table.key, floor, spec.names)
    keys = local_checkpoint(deferred_key_order.passed(decoded, "key_row", F.col("moved")))
    number = keys.count()
    if not number:
        return decoded
    if lake is not None:
        lake = rows_of(lake, table.key, keys, F.col("key_row"), number)
    return deferred_key_order.in_order(decoded, keys, lake, table.key, floor, graves, spec.names)


def _changeset(
    frame: DataFrame,
    batch_stats: Sequence[BatchStats],
    table: TableSpec,
    spec: PipelineSpec,
    keys: int,
    inserted: int,
) -> Changeset:
    return Changeset(
        frame=frame,
        columns=table.names(),
        key=table.key,
        fillable=table.fillable(table.encodings_in(spec)),
        floor=max((stats.floor for stats in batch_stats), default=""),
        low=min((stats.low for stats in batch_stats if stats.low), default=""),
        high=max((max(stats.high, stats.floor) for stats in batch_stats), default=""),
        rows=keys,
        inserts_only=keys == inserted,
        masked=table.partial or any(stats.masked for stats in batch_stats),
        deletes=any(stats.deletes for stats in batch_stats),
        size=sum(stats.size for stats in batch_stats),
        floor_event=_floor_event(batch_stats),
        partition=table.partition,
        forgiven=tuple(table.absences.dropped),
        fills={
            column.name: default_value(
                column, table.fills[column.name], table.encodings_in(spec).infinite
            )
            for column in table.columns
            if column.name in table.fills
        },
    )


def _floor_event(batch_stats: Sequence[BatchStats]) -> Mapping[str, object]:
    """Return what RFC-39's columns say of the rows that the newest truncate sweeps away."""
    newest = max(batch_stats, key=lambda stats: stats.floor, default=None)
    told = newest.floor_event if newest else {}
    return {**told, OPERATION: GONE} if told else {}


def _with_moved(
    payload: DataFrame,
    decoded: DataFrame,
    table: TableSpec,
    spec: PipelineSpec,
    lake: DataFrame | None,
) -> DataFrame:
    """Follow primary-key changes until nothing more of them is in the batch, then to the lake."""
    fillable = table.fillable(table.encodings_in(spec))
    pending = local_checkpoint(key_changes.links(payload, table.key, fillable))
    number = pending.count()
    if not number:
        return payload
    if spec.whole and lake is not None:
        asked = rows_of(lake, table.key, pending, F.col("new_key"), number)
        pending = key_changes.not_stored(pending, asked, table.key, spec.names)
    ended = pending.where(F.col("ended"))
    while True:
        pending = local_checkpoint(key_changes.hop(pending, decoded, fillable))
        ended = ended.unionByName(pending.where(F.col("ended")))
        pending = pending.where(~F.col("ended"))
        if pending.isEmpty():
            break
    on_the_way = ended.select(F.explode("way.at_key").alias("at_key"))
    asked = (
        payload.limit(0)
        if lake is None
        else rows_of(lake, table.key, on_the_way, F.col("at_key"), number)
    )
    resolved = key_changes.from_table(ended, asked, table.key, fillable, spec.names)
    return key_changes.with_moved(payload, resolved, table.key, fillable, spec.names)
