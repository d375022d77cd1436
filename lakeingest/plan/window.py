"""Records of a window to changes, boundaries and batches: stages one to four, joined.

A window is what one reading of the log brings; a batch is a run of whole transactions in it. The
window is decoded once however many batches are cut from it.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeingest.envelope import changes
from lakeingest.envelope.change import FAMILIES
from lakeingest.plan.spec import PipelineSpec
from lakeingest.shape import Kind
from lakeingest.transaction import completeness
from lakeingest.transaction.boundary import boundaries
from lakeingest.transaction.cut import Cut

SNAPSHOT_BATCH = 0
"""Index of the window's batch that holds the initial snapshot; cuts are numbered from 1."""


def window_changes(records: DataFrame, spec: PipelineSpec) -> DataFrame:
    """Decode data records to ``shape.CHANGE``."""
    event = bool(spec.names.event)
    envelopes = spec.format.envelopes(records, event=event)
    marks, key_body = spec.format.marks(spec.encodings), spec.format.key_body(F.col("key"))
    return changes(envelopes, spec.connector, spec.epoch, marks, key_body, event=event)


def window_metadata(records: DataFrame, spec: PipelineSpec) -> DataFrame:
    """Decode records of the transaction topic (``WireFormat.transaction_metadata``'s columns)."""
    return spec.format.transaction_metadata(records)


def window_boundaries(metadata: DataFrame, spec: PipelineSpec) -> DataFrame:
    """Find the transactions that are over: ``shape.BOUNDARY`` plus ``domain``."""
    family = FAMILIES[spec.connector]
    id_ = F.col("id")
    found = boundaries(
        metadata,
        family.transaction_key(id_),
        family.end_position(F.lit(spec.epoch), id_),
        family.order(id_),
        family.implied_end,
    )
    return found.withColumn("domain", family.order_domain(id_))


def is_counted(selected: Column | None, uncounted: Sequence[str]) -> Column:
    """Condition over ``data_collection``: its rows are read here, so END's count must be met.

    PostgreSQL counts logical messages under names like ``…MessageId@50a5e486``: not rows.

    Args:
        selected: Whether the configuration selects the collection's topic; null: all are.
        uncounted: Collections whose rows are known to be dropped on the way.
    """
    name = F.col("data_collection")
    message = name.rlike(r"^io\.debezium\..*@[0-9a-f]+$")
    counted = ~message & ~name.isin("", *uncounted)
    return counted if selected is None else counted & selected


def assigned(window: DataFrame, ends: DataFrame) -> DataFrame:
    """Give each change its transaction's ``end_offset``, unless it has it already."""
    if "end_offset" in window.columns:
        return window
    return completeness.assigned(window, ends)


def shortfalls(window: DataFrame, ends: DataFrame, counted: Column) -> DataFrame:
    """Find the transactions of the window that lack rows; see ``completeness``."""
    rows = completeness.transactional(assigned(window, ends))
    return completeness.shortfalls(rows, ends, counted)


def interrupted(window: DataFrame, ends: DataFrame, counted: Column) -> DataFrame:
    """Find transactions with a repeated BEGIN that no incarnation sent whole."""
    rows = completeness.transactional(assigned(window, ends))
    return completeness.interrupted(rows, ends, counted)


def in_batches(
    window: DataFrame,
    ends: DataFrame,
    cuts: Sequence[Cut],
    frontier_position: str,
    *,
    snapshot: bool,
) -> DataFrame:
    """Give each change of the window the index of its batch (``batch``, null: stays pending).

    Rows of a transaction go with their END. Rows without one (incremental snapshots, MySQL's
    TRUNCATE) go with the first cut above their position. Rows of transactions that were released
    before have come again: they go with the first batch, where they change nothing. So do rows of
    an initial snapshot that was published before.

    Args:
        window: ``shape.CHANGE``.
        ends: The window's boundaries.
        cuts: Its batches, in commit order.
        frontier_position: Position above everything released before.
        snapshot: Whether the initial snapshot is complete and forms batch 0.
    """
    offsets = F.array(*(F.lit(cut.last_offset) for cut in cuts)).cast("array<bigint>")
    positions = F.array(*(F.lit(cut.position) for cut in cuts)).cast("array<string>")
    by_end = 1 + F.size(F.filter(offsets, lambda last: last < F.col("end_offset")))
    by_position = 1 + F.size(F.filter(positions, lambda above: above <= F.col("position")))
    index = (
        F.when(F.lit(snapshot) & (F.col("kind") == Kind.SNAPSHOT), F.lit(SNAPSHOT_BATCH))
        .when(~F.col("kind").isin(Kind.ROW, Kind.TRUNCATE, Kind.SNAPSHOT), F.lit(None))
        .when(F.col("end_offset").isNotNull(), by_end)
        .when(_again(frontier_position), F.lit(1))
        .when(F.col("transaction_key").isNull(), by_position)
    )
    rows = assigned(window, ends)
    return rows.withColumn("batch", F.when(index <= len(cuts), index))


def _again(frontier_position: str) -> Column:
    """Condition: the row's transaction was released before."""
    return F.col("position") < F.lit(frontier_position)


def of_batch(
    window: DataFrame, cuts: Sequence[Cut], index: int, frontier_position: str, *, snapshot: bool
) -> DataFrame:
    """Keep the changes of one batch: what ``in_batches`` numbers ``index``, without numbering.

    A plain range condition; the numbering would compare every row with every cut, per table.

    Args:
        window: ``shape.CHANGE`` with ``end_offset``.
        cuts: The window's batches, in commit order.
        index: Which batch.
        frontier_position: Position above everything released before the window.
        snapshot: Whether the initial snapshot forms batch 0.
    """
    if index == SNAPSHOT_BATCH:
        return window.where(F.col("kind") == Kind.SNAPSHOT)
    cut = cuts[index - 1]
    mine = F.col("end_offset").between(cut.first_offset, cut.last_offset)
    lower = F.lit(cuts[index - 2].position if index > 1 else frontier_position)
    position = F.col("position")
    loose = (
        F.col("transaction_key").isNull() & (position >= lower) & (position < F.lit(cut.position))
    )
    without = loose | _again(frontier_position) if index == 1 else loose
    ours = F.when(F.col("end_offset").isNotNull(), mine).otherwise(without)
    kinds = (Kind.ROW, Kind.TRUNCATE) if snapshot else (Kind.ROW, Kind.TRUNCATE, Kind.SNAPSHOT)
    # The numbers first: they turn most of the window away before a text is compared.
    return window.where(ours & F.col("kind").isin(*kinds))
