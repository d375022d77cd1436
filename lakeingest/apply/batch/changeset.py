"""One table's part of a batch: its merge payloads, with moved values filled in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakeingest.apply.batch.latest_per_key import Winners, key_counts
from lakeingest.apply.batch_stats import Share
from lakeingest.decode.defaults import default_value
from lakeingest.engine.local_checkpoint import held
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
    payload_of_partial_rows,
    payload_of_whole_rows,
    payload_of_winners,
    rows_above,
)
from lakeingest.sink.contract import Changeset


def folds_undecoded(shares: Sequence[Share], table: TableSpec, floor: str) -> bool:
    """Tell whether the table's winners can be found without decoding a row.

    Not where a value is left out, where keys are not bare, or where a truncate sweeps rows away.
    """
    masked = table.partial or any(share.masked for share in shares)
    swept = any(share.low <= floor for share in shares if share.low)
    return not (masked or table.key_in_value or not table.reader.bare_keys or swept)


def rows_pass(rows: DataFrame, shares: Sequence[Share]) -> bool:
    """Return whether rows may exchange record keys (``payload/deferred_key_order.py``)."""
    return any(share.relocated for share in shares) and not keys_passed(rows).isEmpty()


def asks_lake(shares: Sequence[Share], table: TableSpec) -> bool:
    """Tell whether a changeset that is not folded undecoded may have to ask the table."""
    if table.key_in_value:
        return table.keyless is not Keyless.APPEND
    return any(share.moved or share.relocated for share in shares)


def changeset(
    changes: DataFrame,
    shares: Sequence[Share],
    table: TableSpec,
    spec: PipelineSpec,
    floor: str,
    lake: DataFrame | None,
    winners: Winners | None = None,
    graves: str = "",
) -> tuple[Changeset, int]:
    """Fold a table's changes of one batch.

    Args:
        changes: The table's changes in the batch (``CHANGE``).
        shares: Their summaries.
        table: Columns and key.
        spec: Pipeline settings.
        floor: Position of the newest truncate so far, this batch's included; empty: none.
        lake: The table as it is now, for rows that moved to another key; null if it is new, or
            if ``asks_lake`` does not.
        winners: The batch's winners, where ``folds_undecoded`` and they are known.
        graves: See ``passing.in_order``.

    Returns:
        The changeset and the number of its payloads.
    """
    if winners is not None:
        payload = payload_of_winners(winners.of(table.collection), table, spec)
        keys = winners.keys.get(table.collection, 0)
        inserted = winners.inserted.get(table.collection, 0)
        return _changeset(payload, shares, table, spec, keys, inserted), keys
    masked = table.partial or any(share.masked for share in shares)
    rows = rows_above(changes, floor)
    if masked or table.key_in_value or any(share.relocated for share in shares):
        payload = _partial(rows, shares, table, spec, floor, lake, graves)
    else:
        payload = payload_of_whole_rows(rows, table, spec)
    frame = held(payload)
    gone = F.count_if(F.col(spec.names.deleted)).alias("gone")
    row = frame.agg(*key_counts(FIRST_OP), gone).first()
    keys, inserted = (int(row["keys"]), int(row["inserted"])) if row else (0, 0)
    made = _changeset(frame, shares, table, spec, keys, inserted)
    # An update may have been taken apart into a delete and a create (``plan/table.py``).
    return replace(made, deletes=made.deletes or bool(row and row["gone"])), keys


def _partial(
    rows: DataFrame,
    shares: Sequence[Share],
    table: TableSpec,
    spec: PipelineSpec,
    floor: str,
    lake: DataFrame | None,
    graves: str,
) -> DataFrame:
    moved = any(share.moved for share in shares)
    decoded = decoded_rows(rows, table, spec)
    if moved and (not old_keys_told(table) or any(share.unpaired for share in shares)):
        decoded = key_changes.paired(decoded)
    misplaced = table.keyless is Keyless.FULL_ROW or (spec.whole and asks_lake(shares, table))
    if moved or misplaced:
        decoded = held(decoded)
    placed = _in_place(decoded, table, spec, floor, lake, graves) if misplaced else decoded
    if not moved:
        return payload_of_partial_rows(placed, table, spec)
    if placed is not decoded:
        placed = held(placed)
    payload = held(payload_of_partial_rows(placed, table, spec))
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
    keys = held(deferred_key_order.passed(decoded, "key_row", F.col("moved")))
    number = keys.count()
    if not number:
        return decoded
    if lake is not None:
        lake = rows_of(lake, table.key, keys, F.col("key_row"), number)
    return deferred_key_order.in_order(decoded, keys, lake, table.key, floor, graves, spec.names)


def _changeset(
    frame: DataFrame,
    shares: Sequence[Share],
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
        floor=max((share.floor for share in shares), default=""),
        low=min((share.low for share in shares if share.low), default=""),
        high=max((max(share.high, share.floor) for share in shares), default=""),
        rows=keys,
        inserts_only=keys == inserted,
        masked=table.partial or any(share.masked for share in shares),
        deletes=any(share.deletes for share in shares),
        size=sum(share.size for share in shares),
        floor_event=_floor_event(shares),
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


def _floor_event(shares: Sequence[Share]) -> Mapping[str, object]:
    """Return what RFC-39's columns say of the rows that the newest truncate sweeps away."""
    newest = max(shares, key=lambda share: share.floor, default=None)
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
    pending = held(key_changes.links(payload, table.key, fillable))
    number = pending.count()
    if not number:
        return payload
    if spec.whole and lake is not None:
        asked = rows_of(lake, table.key, pending, F.col("new_key"), number)
        pending = key_changes.not_stored(pending, asked, table.key, spec.names)
    ended = pending.where(F.col("ended"))
    while True:
        pending = held(key_changes.hop(pending, decoded, fillable))
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
