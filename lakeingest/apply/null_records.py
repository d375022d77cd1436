"""Null records that are a delete by themselves, where no transaction counts them: refused.

Debezium writes a null record behind the ``d`` of its key, for compaction; it says nothing that the
``d`` did not say. Where the ``d`` is gone it is the delete, and to pass it over leaves the row in
the lake for ever. That is so for rows without envelopes, unless the transform writes deletes as
rows, and for a topic that was compacted before it was read. With transactions END has counted the
delete; without, only what lies before a null record tells the two apart.

A null record has no place in the source's log, so it cannot be applied: an older change that comes
again would bring the row back, a newer one that came before would be lost. Of its key, what lies
before it in its partition decides:

* a ``d`` (or a null record that was judged itself): nothing is missing;
* another change: its delete is missing;
* nothing that this window has: its delete may be the last record of the window before, if it is the
  first one of this one. Where the partition is read from its beginning, the lake has no such row.
  Else a row that was applied before is gone, or one that compaction took wholly: not known.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from lakeingest.apply.contents import Contents
from lakeingest.errors import DataError
from lakeingest.shape import Kind
from lakeingest.source.contract import TopicPartition


@dataclass(frozen=True)
class Alone:
    """Null records of one partition that no delete of their key comes before.

    Attributes:
        changed: Offset of the first one behind another change of its key; null: none is.
        unseen: Offsets of the first two behind nothing of their key.
    """

    changed: int | None
    unseen: tuple[int, ...]


def refuse_lone_null_records(
    changes: DataFrame, found: Contents, known: Collection[TopicPartition]
) -> None:
    """Stop at a null record whose delete is missing; runs a job only where there are null records.

    Args:
        changes: ``shape.CHANGE`` of a window.
        found: What is in it.
        known: Partitions of which something was read before.

    Raises:
        DataError: There is one.
    """
    where = {portion.where for portion in found.of(Kind.NULL_RECORD)}
    if not where:
        return
    first: dict[TopicPartition, int] = {}
    for portion in found.portions:
        first[portion.where] = min(portion.first_offset, first.get(portion.where, 2**62))
    for place, alone in sorted(_alone(changes, {place.topic for place in where}).items()):
        offset = _missing(alone, first[place], read_before=place in known)
        if offset is not None:
            raise _refused(place, offset)


def _missing(alone: Alone, first: int, *, read_before: bool) -> int | None:
    """Return the offset of a null record whose delete is missing."""
    unseen = [offset for offset in alone.unseen if read_before and offset > first]
    offsets = unseen if alone.changed is None else [alone.changed, *unseen]
    return min(offsets, default=None)


def _alone(changes: DataFrame, topics: Collection[str]) -> Mapping[TopicPartition, Alone]:
    by_key = Window.partitionBy("topic", "partition", "key").orderBy("offset")
    is_null = F.col("kind") == Kind.NULL_RECORD
    gone = is_null | F.coalesce(F.col("op") == "d", F.lit(False))
    rows = (
        changes.where(F.col("key").isNotNull() & F.col("topic").isin(*topics))
        .select("topic", "partition", "offset", "key", is_null.alias("is_null"), gone.alias("gone"))
        .withColumn("after_gone", F.lag("gone").over(by_key))
        .where(F.col("is_null") & ~F.coalesce(F.col("after_gone"), F.lit(False)))
        .groupBy("topic", "partition")
        .agg(
            F.min(F.when(F.col("after_gone").isNotNull(), F.col("offset"))).alias("changed"),
            F.slice(
                F.array_sort(F.collect_list(F.when(F.col("after_gone").isNull(), F.col("offset")))),
                1,
                2,
            ).alias("unseen"),
        )
        .collect()
    )
    return {
        TopicPartition(row["topic"], row["partition"]): Alone(row["changed"], tuple(row["unseen"]))
        for row in rows
    }


def _refused(where: TopicPartition, offset: int) -> DataError:
    return DataError(
        f"The record at offset {offset} of '{where.topic}' partition {where.partition} is a null "
        "record, and the delete that belongs before it is missing: it would be dropped, and the "
        "row stay. A null record has no place in the source's log, so it cannot be applied "
        "without transactions. If a transform unwraps the rows (ExtractNewRecordState), set its "
        "delete.tombstone.handling.mode=rewrite; if the topic is compacted, set its "
        "cleanup.policy=delete, or raise lakeingest.batch.max.events so that a first run reads it "
        "in one piece. What is in the topic already needs a topic that was repaired, or a new "
        "lake (another lakeingest.target.path). Nothing of this batch was published."
    )
