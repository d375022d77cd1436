"""Summarise the records of a window: a handful of rows per partition and kind, never its own rows.

One query answers what a decision about the window needs (``contents.py``) and what is to be known
of its batches (``batch_stats.py``). It also fills the cache of the window. Rejected: a query for
each. To plan and start one takes longer than to read a small window.

The driver collects summaries, whose number grows with partitions, tables and batches and not with
events, and of each the newest row and two keys. From the row it reads *field names* (and JSON types
or Connect schema). Values are never logged or kept.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from lakeingest.decode.wire import WireFormat
from lakeingest.engine.known_columns import Selection, column, made_once
from lakeingest.event_columns import EVENT
from lakeingest.frame_schemas import Kind
from lakeingest.plan.snapshot_attempts import snapshot_place
from lakeingest.position import begins_at_zero


def summarise(window: DataFrame, format_: WireFormat, below: str | None = None) -> Sequence[Row]:
    """Summarise a window whose changes have their ``batch`` (``plan.batches.in_batches``).

    Args:
        window: Changes; with ``end_offset`` unless ``below`` is None.
        format_: Format of its records.
        below: Position below which every transaction was released; None: there are no transactions.

    Returns:
        The columns of ``_groups`` and ``_summary``.
    """
    if below is not None:
        window = window.withColumn("_is_released", F.col("position") < F.lit(below))
    tags = format_.schema_tag(column("value")), format_.key_tag(column("key"))
    summary = _summary(*tags, whole=below is not None, event=EVENT in window.columns)
    return summary.of_groups(window, _groups(tags[0])).collect()


@made_once
def _groups(value_tag: Column) -> Selection:
    """Return what the records of a summary share; of a snapshot's, its attempt, too.

    Rows of one schema have a summary of their own: its highest position is that of the schema.

    Args:
        value_tag: Tag of the schema of ``value``.
    """
    snapshot = F.col("kind") == Kind.SNAPSHOT
    is_row = F.col("kind").isin(Kind.ROW, Kind.SNAPSHOT)
    return Selection(
        "batch",
        "topic",
        "partition",
        "collection",
        "kind",
        F.when(snapshot, F.col("incarnation")).alias("run"),
        F.when(snapshot, snapshot_place()).alias("place"),
        F.when(is_row, value_tag).alias("value_tag"),
    )


@made_once
def _summary(value_tag: Column, key_tag: Column, *, whole: bool, event: bool) -> Selection:
    """Return the columns of a summary.

    Args:
        value_tag: Tag of the schema of ``value``.
        key_tag: Tag of the schema of ``key``.
        whole: Whether there are transactions.
        event: Whether the window reads RFC-39's columns.
    """
    snapshot = F.col("kind") == Kind.SNAPSHOT
    of_transaction = F.col("transaction_key").isNotNull()
    is_row = F.col("kind").isin(Kind.ROW, Kind.SNAPSHOT)
    released, waits = F.lit(False), F.lit(False)
    ended = F.lit(None).cast("bigint")
    if whole:
        released = of_transaction & ~snapshot & F.col("_is_released")
        is_streamed = F.col("kind").isin(Kind.ROW, Kind.TRUNCATE)
        ended = F.when(of_transaction & is_streamed, F.col("end_offset"))
        has_no_end = F.col("end_offset").isNull() & ~F.col("_is_released")
        waits = is_streamed & of_transaction & has_no_end
    # A delete has no after-image: it is the sample only where there is no other row.
    newest = F.struct(F.col("op") != "d", F.col("offset"))
    with_key = F.when(is_row & F.col("key").isNotNull(), F.col("offset"))
    # A create omits values only if a primary-key change made it.
    key_change = F.col("may_be_masked") & (F.col("op") == "c")
    without_run = F.col("incarnation").isNull() & of_transaction
    created = without_run & (F.col("op") == "c") & F.col("moved_from").isNull()
    truncated_at = F.when(F.col("kind") == Kind.TRUNCATE, F.col("position"))
    at_floor = F.max_by(EVENT, truncated_at).alias(EVENT)
    return Selection(
        F.count("*").alias("records"),
        F.min("offset").alias("first_offset"),
        F.max("offset").alias("last_offset"),
        F.min(F.when(released, None).otherwise(F.col("offset"))).alias("first_new"),
        F.min("position").alias("low"),
        F.max("position").alias("high"),
        F.min("source_ms").alias("first_ms"),
        F.max("source_ms").alias("source_ms"),
        F.count_if(snapshot & (F.col("snapshot") == "first")).alias("firsts"),
        F.collect_set(F.when(snapshot, F.col("snapshot"))).alias("marks"),
        F.collect_set(value_tag).alias("value_tags"),
        F.collect_set(key_tag).alias("key_tags"),
        F.min(F.when(waits, F.struct("position", "transaction_key"))).alias("unended"),
        F.min(ended).alias("first_end"),
        F.max(F.when(begins_at_zero(F.col("position")), ended)).alias("unplaced_end"),
        F.count_if("may_be_masked").alias("masked"),
        F.count_if(key_change).alias("moved"),
        F.count_if(key_change & F.col("moved_from").isNull()).alias("unpaired"),
        F.count_if(F.col("moved_from").isNotNull()).alias("relocated"),
        F.bit_or(F.when(without_run & (F.col("op") == "d"), _bit())).alias("gone_at"),
        F.bit_or(F.when(created, _bit())).alias("come_at"),
        # A set, not a count: then Spark groups in memory and does not sort the window.
        F.collect_set("op").alias("ops"),
        F.count_if(F.col("key").isNull()).alias("keyless"),
        F.sum(F.octet_length("value")).alias("size"),
        F.max_by("value", F.when(is_row, newest)).alias("sample"),
        F.max(F.when(is_row, newest)).alias("sampled"),
        F.max_by("key", with_key).alias("sample_key"),
        F.min_by("key", with_key).alias("first_key"),
        *([at_floor] if event else ()),
    )


def _bit() -> Column:
    """Return one of 63 bits, chosen by a hash of the row's position in the log."""
    return F.expr("shiftleft(1L, cast(pmod(xxhash64(position), 63) as int))")
