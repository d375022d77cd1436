"""Build one table's merge payloads of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from lakeingest.apply.batch.fold_rows import (
    FoldedRows,
    decoded_changes,
    fold_partial_rows,
    folded,
)
from lakeingest.apply.batch.latest_per_key import LatestPerKey
from lakeingest.apply.batch.table_part import Fold, TablePart
from lakeingest.apply.batch_stats import BatchStats
from lakeingest.decode.defaults import default_value
from lakeingest.engine.local_checkpoint import local_checkpoint
from lakeingest.event_columns import GONE, OPERATION
from lakeingest.frame_schemas import END
from lakeingest.plan.spec import PipelineSpec
from lakeingest.plan.table import (
    payload_of_latest,
    payload_of_partial_rows,
    payload_of_whole_rows,
)
from lakeingest.sink.contract import Changeset


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
        tombstones_to: See ``key_lookup.with_table_row``.

    Returns:
        The changeset and the number of its payloads.
    """
    payloads = _payloads(part, spec, lake, latest, tombstones_to)
    return _changeset(payloads, part, spec), payloads.keys


def _payloads(
    part: TablePart,
    spec: PipelineSpec,
    lake: DataFrame | None,
    latest: LatestPerKey | None,
    tombstones_to: str,
) -> FoldedRows:
    """Fold a part; where the batch's latest per key counts its payloads, without a job."""
    table = part.table
    if latest is None or not part.counts_undecoded:
        if part.fold is Fold.PARTIAL_ROWS:
            return fold_partial_rows(part, spec, lake, tombstones_to)
        return folded(payload_of_whole_rows(part.rows, table, spec), spec.names.deleted)
    if part.fold is Fold.UNDECODED:
        payload = payload_of_latest(latest.of(table.collection), table, spec)
    else:
        decoded = decoded_changes(part, spec)
        payload = local_checkpoint(payload_of_partial_rows(decoded, table, spec))
    # A table with a truncate and no row has no number.
    keys = latest.keys.get(table.collection, 0)
    return FoldedRows(payload=payload, keys=keys, inserted=latest.inserted.get(table.collection, 0))


def _changeset(payloads: FoldedRows, part: TablePart, spec: PipelineSpec) -> Changeset:
    table, batch_stats = part.table, part.batch_stats
    infinite = table.encodings_in(spec).infinite
    return Changeset(
        frame=payloads.payload if part.cut_out_at is None else payloads.payload.drop(END),
        columns=table.names(),
        key=table.key,
        fillable=table.fillable(table.encodings_in(spec)),
        floor=max((stats.floor for stats in batch_stats), default=""),
        low=min((stats.low for stats in batch_stats if stats.low), default=""),
        high=part.high,
        rows=payloads.keys,
        inserts_only=payloads.keys == payloads.inserted,
        masked=part.masked,
        # ``plan/table.py`` may split an update into a delete and a create.
        deletes=bool(payloads.deleted) or any(stats.deletes for stats in batch_stats),
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
