"""Fold the decoded changes of one table, and ask at once what must be known of the payloads.

One job answers for a table how many payloads there are, and whether rows exchanged keys or took
values along from another key. The steps for that run only where there are such keys. Rejected: a
job for each question. They were half of the jobs of a table with key changes (measured).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakeingest.apply.batch.latest_per_key import key_counts
from lakeingest.apply.batch.table_part import TablePart
from lakeingest.engine.local_checkpoint import local_checkpoint
from lakeingest.frame_schemas import FIRST_OP, LINK
from lakeingest.payload import deferred_key_order, key_changes
from lakeingest.payload.fold import carried_end
from lakeingest.payload.key_lookup import rows_of
from lakeingest.payload.net_zero import net_zero_rows, resolve_net_zero
from lakeingest.plan.spec import Keyless, PipelineSpec
from lakeingest.plan.table import (
    decoded_rows,
    has_old_keys,
    payload_of_partial_rows,
)

_Selection = Callable[[DataFrame], DataFrame]


@dataclass(frozen=True, kw_only=True)
class FoldedRows:
    """Merge payloads of a table's part of a batch, and what one job says of them.

    Attributes:
        payload: One row per key (``payload.fold.fold_rows``).
        keys: Number of payloads.
        inserted: Number of payloads whose first change is an insert.
        deleted: Number of payloads that are tombstones.
        linked: Number of payloads with columns that another key's row has.
        chained: Number of these whose other key got its row from a third one in this batch.
        unordered: Number of keys whose changes are not in the order of their positions.
    """

    payload: DataFrame
    keys: int = 0
    inserted: int = 0
    deleted: int = 0
    linked: int = 0
    chained: int = 0
    unordered: int = 0


def folded(payload: DataFrame, deleted: str, *more: DataFrame) -> FoldedRows:
    """Checkpoint payloads and count them, in one job, which returns a row for each frame.

    Args:
        payload: Merge payloads; ``LINK`` where another key's row may have values.
        deleted: Name of the column that marks tombstones.
        *more: Frames of one row: further numbers of ``FoldedRows`` by name.
    """
    checkpointed = local_checkpoint(payload)
    numbers = [*key_counts(FIRST_OP), F.count_if(F.col(deleted)).alias("deleted")]
    if LINK in payload.columns:
        numbers.append(F.count_if(F.col(LINK).isNotNull()).alias("linked"))
    frames = [checkpointed.agg(*numbers), *more]
    rows = reduce(partial(DataFrame.unionByName, allowMissingColumns=True), frames).collect()
    sums = {name: sum(row[name] or 0 for row in rows) for name in rows[0].asDict()}
    return FoldedRows(payload=checkpointed, **sums)


def fold_partial_rows(
    part: TablePart, spec: PipelineSpec, lake: DataFrame | None, tombstones_to: str
) -> FoldedRows:
    """Fold decoded changes of which some lack values, have their key inside, or change it.

    Args:
        part: The table's part of the batch.
        spec: Pipeline settings.
        lake: The table as it is now; None: see ``changeset.changeset``.
        tombstones_to: See ``key_lookup.with_table_row``.
    """
    unordered = _unordered_keys(part, spec)
    decoded = decoded_changes(part, spec)
    if part.has_key_changes or unordered:
        decoded = local_checkpoint(decoded)
    payloads = _fold(decoded, part, spec, unordered)
    if unordered and payloads.unordered:
        keys, number = local_checkpoint(unordered(decoded)), payloads.unordered
        rows = None if lake is None else _rows_now(lake, keys, number, part, spec)
        ordered = _in_row_order(decoded, keys, rows, part, spec, tombstones_to)
        decoded = local_checkpoint(ordered)
        payloads = _fold(decoded, part, spec)
    if not payloads.linked:
        return payloads
    with_values = _with_old_values(payloads, decoded, part, spec, lake)
    return replace(payloads, payload=local_checkpoint(with_values))


def decoded_changes(part: TablePart, spec: PipelineSpec) -> DataFrame:
    """Decode the changes that no truncate sweeps away, with the old keys of key changes."""
    decoded = decoded_rows(part.rows, part.table, spec)
    if part.has_key_changes and (
        not has_old_keys(part.table) or any(stats.unpaired for stats in part.batch_stats)
    ):
        return key_changes.with_old_keys(decoded)
    return decoded


def _unordered_keys(part: TablePart, spec: PipelineSpec) -> _Selection | None:
    """Return what selects the keys whose changes need another order; None: none can need it."""
    if part.table.keyless is Keyless.FULL_ROW:
        return net_zero_rows
    if not (spec.whole and part.asks_lake):
        return None
    return partial(deferred_key_order.exchanged_keys, key="key_row", moved=F.col("moved"))


def _fold(
    decoded: DataFrame, part: TablePart, spec: PipelineSpec, unordered: _Selection | None = None
) -> FoldedRows:
    payload = local_checkpoint(payload_of_partial_rows(decoded, part.table, spec))
    more = []
    if unordered is not None:
        more.append(unordered(decoded).agg(F.count("*").alias("unordered")))
    if part.has_key_changes:
        chained = key_changes.chained(payload, decoded)
        more.append(chained.agg(F.count("*").alias("chained")))
    return folded(payload, spec.names.deleted, *more)


def _rows_now(
    lake: DataFrame, keys: DataFrame, number: int, part: TablePart, spec: PipelineSpec
) -> DataFrame:
    """Return the table's rows of ``number`` keys that no truncate of the batch sweeps away."""
    above_floor = lake.where(F.col(spec.names.position) > F.lit(part.floor))
    return local_checkpoint(rows_of(above_floor, part.table.key, keys, F.col("key_row"), number))


def _in_row_order(
    decoded: DataFrame,
    keys: DataFrame,
    rows: DataFrame | None,
    part: TablePart,
    spec: PipelineSpec,
    tombstones_to: str,
) -> DataFrame:
    """Order the changes of ``keys``, whose ``rows`` are in the table, where positions do not."""
    key = part.table.key
    if part.table.keyless is Keyless.FULL_ROW:
        return resolve_net_zero(decoded, rows, key, tombstones_to, spec.names)
    return deferred_key_order.in_order(decoded, keys, rows, key, tombstones_to, spec.names)


def _with_old_values(
    payloads: FoldedRows,
    decoded: DataFrame,
    part: TablePart,
    spec: PipelineSpec,
    lake: DataFrame | None,
) -> DataFrame:
    """Fill values across key changes: follow the old keys through the batch, then read the lake."""
    table, payload = part.table, payloads.payload
    fillable = table.fillable(table.encodings_in(spec))
    # Of a key with several payloads, each looks for its own values.
    one_payload = (*table.key, *carried_end(payload))
    links = key_changes.links(payload, one_payload, fillable)
    ended = _ended_links(links, decoded, fillable, chained=bool(payloads.chained))
    stored = payload.limit(0)
    if lake is not None:
        new_key = F.struct(*(F.col("new_key").getField(name).alias(name) for name in table.key))
        keys = ended.select(F.explode(F.concat("way.at_key", F.array(new_key))).alias("at_key"))
        stored = local_checkpoint(rows_of(lake, table.key, keys, F.col("at_key"), payloads.linked))
        if spec.whole:
            ended = key_changes.not_stored(ended, stored, table.key, spec.names)
    values = key_changes.from_table(ended, stored, table.key, fillable, spec.names)
    return key_changes.with_moved(payload, values, one_payload, fillable, spec.names)


def _ended_links(
    links: DataFrame, decoded: DataFrame, fillable: tuple[str, ...], *, chained: bool
) -> DataFrame:
    """Follow old keys until the batch has no further key change."""
    open_links = local_checkpoint(key_changes.hop(links, decoded, fillable))
    if not chained:
        return open_links
    ended = open_links.where(F.col("ended"))
    while not (open_links := open_links.where(~F.col("ended"))).isEmpty():
        open_links = local_checkpoint(key_changes.hop(open_links, decoded, fillable))
        ended = ended.unionByName(open_links.where(F.col("ended")))
    return local_checkpoint(ended)
