"""Build one table's merge payloads of a batch; fill the values that key changes leave out."""

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
from lakeingest.payload.net_zero import net_zero_rows, resolve_net_zero
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
    """Return whether the table folds to its latest per key without decoding a row.

    It does not where a change leaves a value out, where keys are not bare, or where a truncate
    sweeps some of the rows away.
    """
    masked = table.partial or any(stats.masked for stats in batch_stats)
    swept = any(stats.low <= floor for stats in batch_stats if stats.low)
    return not (masked or table.key_in_value or not table.reader.bare_keys or swept)


def rows_pass(rows: DataFrame, batch_stats: Sequence[BatchStats]) -> bool:
    """Return whether rows may exchange record keys (``payload/deferred_key_order.py``)."""
    return any(stats.relocated for stats in batch_stats) and not keys_passed(rows).isEmpty()


def asks_lake(batch_stats: Sequence[BatchStats], table: TableSpec) -> bool:
    """Return whether a changeset whose rows are decoded may need a key look-up in the table."""
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
    tombstones_to: str = "",
) -> tuple[Changeset, int]:
    """Fold a table's changes of one batch.

    Args:
        changes: The table's changes in the batch (``CHANGE``).
        batch_stats: Summaries of these changes.
        table: Columns and key.
        spec: Pipeline settings.
        floor: Position of the newest truncate so far, this batch's included; empty: none.
        lake: The table as it is now, for the key look-up; None if the table is new or if
            ``asks_lake`` returns False.
        latest: The batch's latest per key, if ``folds_undecoded`` returns True; else None.
        tombstones_to: See ``deferred_key_order.in_order``.

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
        payload = _partial_payload(rows, batch_stats, table, spec, floor, lake, tombstones_to)
    else:
        payload = payload_of_whole_rows(rows, table, spec)
    frame = local_checkpoint(payload)
    deleted_count = F.count_if(F.col(spec.names.deleted)).alias("gone")
    row = frame.agg(*key_counts(FIRST_OP), deleted_count).first()
    keys, inserted = (int(row["keys"]), int(row["inserted"])) if row else (0, 0)
    result = _changeset(frame, batch_stats, table, spec, keys, inserted)
    # ``plan/table.py`` may split an update into a delete and a create.
    return replace(result, deletes=result.deletes or bool(row and row["gone"])), keys


def _partial_payload(
    rows: DataFrame,
    batch_stats: Sequence[BatchStats],
    table: TableSpec,
    spec: PipelineSpec,
    floor: str,
    lake: DataFrame | None,
    tombstones_to: str,
) -> DataFrame:
    has_key_changes = any(stats.moved for stats in batch_stats)
    decoded = decoded_rows(rows, table, spec)
    if has_key_changes and (
        not old_keys_told(table) or any(stats.unpaired for stats in batch_stats)
    ):
        decoded = key_changes.with_old_keys(decoded)
    needs_order = table.keyless is Keyless.FULL_ROW or (
        spec.whole and asks_lake(batch_stats, table)
    )
    if has_key_changes or needs_order:
        decoded = local_checkpoint(decoded)
    ordered = (
        _in_row_order(decoded, table, spec, floor, lake, tombstones_to) if needs_order else decoded
    )
    if not has_key_changes:
        return payload_of_partial_rows(ordered, table, spec)
    if ordered is not decoded:
        ordered = local_checkpoint(ordered)
    payload = local_checkpoint(payload_of_partial_rows(ordered, table, spec))
    return _with_old_values(payload, ordered, table, spec, lake)


def _in_row_order(
    decoded: DataFrame,
    table: TableSpec,
    spec: PipelineSpec,
    floor: str,
    lake: DataFrame | None,
    tombstones_to: str,
) -> DataFrame:
    """Order the changes of one row where their positions alone do not give the order.

    Returns:
        ``decoded`` itself, which is checkpointed, where the positions give the order.
    """
    has_net_zero = table.keyless is Keyless.FULL_ROW
    keys = (
        net_zero_rows(decoded)
        if has_net_zero
        else local_checkpoint(deferred_key_order.exchanged_keys(decoded, "key_row", F.col("moved")))
    )
    number = keys.count()
    if not number:
        return decoded
    if lake is not None:
        above_floor = lake.where(F.col(spec.names.position) > F.lit(floor))
        lake = rows_of(above_floor, table.key, keys, F.col("key_row"), number)
    if has_net_zero:
        return resolve_net_zero(decoded, lake, table.key, spec.names)
    return deferred_key_order.in_order(decoded, keys, lake, table.key, tombstones_to, spec.names)


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
    """Return RFC-39's columns for the rows that the newest truncate sweeps away."""
    newest = max(batch_stats, key=lambda stats: stats.floor, default=None)
    event = newest.floor_event if newest else {}
    return {**event, OPERATION: GONE} if event else {}


def _with_old_values(
    payload: DataFrame,
    decoded: DataFrame,
    table: TableSpec,
    spec: PipelineSpec,
    lake: DataFrame | None,
) -> DataFrame:
    """Fill values across key changes: follow the old keys through the batch, then read the lake."""
    fillable = table.fillable(table.encodings_in(spec))
    open_links = local_checkpoint(key_changes.links(payload, table.key, fillable))
    number = open_links.count()
    if not number:
        return payload
    if spec.whole and lake is not None:
        table_rows = rows_of(lake, table.key, open_links, F.col("new_key"), number)
        open_links = key_changes.not_stored(open_links, table_rows, table.key, spec.names)
    finished_links = open_links.where(F.col("ended"))
    while True:
        open_links = local_checkpoint(key_changes.hop(open_links, decoded, fillable))
        finished_links = finished_links.unionByName(open_links.where(F.col("ended")))
        open_links = open_links.where(~F.col("ended"))
        if open_links.isEmpty():
            break
    way_keys = finished_links.select(F.explode("way.at_key").alias("at_key"))
    table_rows = (
        payload.limit(0)
        if lake is None
        else rows_of(lake, table.key, way_keys, F.col("at_key"), number)
    )
    old_values = key_changes.from_table(finished_links, table_rows, table.key, fillable, spec.names)
    return key_changes.with_moved(payload, old_values, table.key, fillable, spec.names)
