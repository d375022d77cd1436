"""Build one table's merge payloads of a batch; fill the values that key changes leave out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

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
    has_old_keys,
    keys_with_deferred_order,
    payload_of_latest,
    payload_of_partial_rows,
    payload_of_whole_rows,
    rows_above,
)
from lakeingest.sink.contract import Changeset


class Fold(Enum):
    """How the changes of a table become one payload per key."""

    UNDECODED = "the latest change per key, found before a row is decoded, for many tables at once"
    WHOLE_ROWS = "the latest decoded row per key"
    PARTIAL_ROWS = "decoded rows of which some lack values, have their key inside, or change it"


@dataclass(frozen=True)
class TablePart:
    """One table's part of a batch.

    Attributes:
        table: Columns and key of the table.
        batch_stats: Summaries of its changes.
        changes: Its changes in the batch.
        floor: Position of its newest truncate so far; empty: none.
        fold: How its changes become payloads.
        foreseen: Whether the table's columns after the batch are known before it is written.
    """

    table: TableSpec
    batch_stats: tuple[BatchStats, ...]
    changes: DataFrame
    floor: str
    fold: Fold
    foreseen: bool

    @property
    def masked(self) -> bool:
        """Whether one of its changes may leave a value out."""
        return self.table.partial or any(stats.masked for stats in self.batch_stats)

    @property
    def has_key_changes(self) -> bool:
        """Whether one of its changes gives a row another key."""
        return any(stats.moved for stats in self.batch_stats)

    @property
    def asks_lake(self) -> bool:
        """Whether its changeset may need a key look-up in the lake."""
        if self.fold is not Fold.PARTIAL_ROWS:
            return False
        if self.table.key_in_value:
            return self.table.keyless is not Keyless.APPEND
        return any(stats.moved or stats.relocated for stats in self.batch_stats)


def choose_fold(
    changes: DataFrame,
    batch_stats: Sequence[BatchStats],
    table: TableSpec,
    floor: str,
    *,
    whole: bool,
) -> Fold:
    """Return how a table's changes of a batch fold.

    To fold undecoded is the cheapest. It is wrong where a change leaves a value out, where keys are
    not bare, where a truncate sweeps some of the rows away, or where rows may exchange record keys
    (``payload/deferred_key_order.py``).

    Args:
        changes: The table's changes in the batch (``CHANGE``); asked only where keys changed.
        batch_stats: Summaries of these changes.
        table: Columns and key.
        floor: Position of the newest truncate so far, this batch's included; empty: none.
        whole: Whether the batch holds whole transactions.
    """
    masked = table.partial or any(stats.masked for stats in batch_stats)
    relocated = any(stats.relocated for stats in batch_stats)
    swept = any(stats.low <= floor for stats in batch_stats if stats.low)
    decodes = masked or table.key_in_value or not table.reader.bare_keys or swept
    if not decodes and (not (whole and relocated) or keys_with_deferred_order(changes).isEmpty()):
        return Fold.UNDECODED
    return Fold.PARTIAL_ROWS if masked or table.key_in_value or relocated else Fold.WHOLE_ROWS


def changeset(
    part: TablePart,
    spec: PipelineSpec,
    lake: DataFrame | None,
    latest: LatestPerKey | None = None,
    tombstones_to: str = "",
) -> tuple[Changeset, int]:
    """Fold a table's changes of one batch.

    Args:
        part: The table's part of the batch.
        spec: Pipeline settings.
        lake: The table as it is now, for the key look-up; None if the table is new or if the part
            does not ask for it (``asks_lake``).
        latest: The batch's latest per key, if the part folds undecoded.
        tombstones_to: See ``deferred_key_order.in_order``.

    Returns:
        The changeset and the number of its payloads.
    """
    table = part.table
    if part.fold is Fold.UNDECODED and latest is not None:
        payload = payload_of_latest(latest.of(table.collection), table, spec)
        keys = latest.keys.get(table.collection, 0)
        inserted = latest.inserted.get(table.collection, 0)
        return _changeset(payload, part, spec, keys, inserted), keys
    if part.fold is Fold.PARTIAL_ROWS:
        payload = _partial_payload(part, spec, lake, tombstones_to)
    else:
        payload = payload_of_whole_rows(rows_above(part.changes, part.floor), table, spec)
    frame = local_checkpoint(payload)
    deleted_count = F.count_if(F.col(spec.names.deleted)).alias("gone")
    row = frame.agg(*key_counts(FIRST_OP), deleted_count).first()
    keys, inserted = (int(row["keys"]), int(row["inserted"])) if row else (0, 0)
    result = _changeset(frame, part, spec, keys, inserted)
    # ``plan/table.py`` may split an update into a delete and a create.
    return replace(result, deletes=result.deletes or bool(row and row["gone"])), keys


def _partial_payload(
    part: TablePart, spec: PipelineSpec, lake: DataFrame | None, tombstones_to: str
) -> DataFrame:
    table = part.table
    decoded = decoded_rows(rows_above(part.changes, part.floor), table, spec)
    if part.has_key_changes and (
        not has_old_keys(table) or any(stats.unpaired for stats in part.batch_stats)
    ):
        decoded = key_changes.with_old_keys(decoded)
    needs_order = table.keyless is Keyless.FULL_ROW or (spec.whole and part.asks_lake)
    if part.has_key_changes or needs_order:
        decoded = local_checkpoint(decoded)
    ordered = _in_row_order(decoded, part, spec, lake, tombstones_to) if needs_order else decoded
    if not part.has_key_changes:
        return payload_of_partial_rows(ordered, table, spec)
    if ordered is not decoded:
        ordered = local_checkpoint(ordered)
    payload = local_checkpoint(payload_of_partial_rows(ordered, table, spec))
    return _with_old_values(payload, ordered, table, spec, lake)


def _in_row_order(
    decoded: DataFrame,
    part: TablePart,
    spec: PipelineSpec,
    lake: DataFrame | None,
    tombstones_to: str,
) -> DataFrame:
    """Order the changes of one row where their positions alone do not give the order.

    Returns:
        ``decoded`` itself, which is checkpointed, where the positions give the order.
    """
    table, floor = part.table, part.floor
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
    frame: DataFrame, part: TablePart, spec: PipelineSpec, keys: int, inserted: int
) -> Changeset:
    table, batch_stats = part.table, part.batch_stats
    infinite = table.encodings_in(spec).infinite
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
        masked=part.masked,
        deletes=any(stats.deletes for stats in batch_stats),
        size=sum(stats.size for stats in batch_stats),
        floor_event=_floor_event(batch_stats),
        partition=table.partition,
        forgiven=tuple(table.absences.dropped),
        fills={
            column.name: default_value(column, table.fills[column.name], infinite)
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
