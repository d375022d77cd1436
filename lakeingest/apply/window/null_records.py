"""Refuse null records that are a delete by themselves, where no END counts them.

Debezium writes a null record behind the ``d`` of its key, for compaction. It says nothing that the
``d`` did not say. Where the ``d`` is missing, the null record is the delete, and to skip it leaves
the row in the lake for ever. This happens for rows without envelopes, unless the transform writes
deletes as rows, and for a topic that was compacted before it was read. Where there is an END, it
counts the delete. Without, only the records before a null record tell the two cases apart.

A null record has no place in the source's log, so it cannot be applied: a redelivered older change
would bring the row back, and a newer change that came before would be lost. The record of its key
before it, in its partition, decides:

* a ``d`` (or a null record that was judged itself): nothing is missing;
* another change: its delete is missing;
* no such record in this window: where the partition is read from its beginning, the lake has no
  such row. Otherwise the null record deletes a row that was applied before, or one that compaction
  removed wholly: not known.

To judge a null record that opens a window, read the record before it. Assuming that a delete was
there would drop real deletes: each lone delete that comes while nothing else is waiting.

A transform that routes by a field of the row sends a null record, which has no field, to another
partition than its ``d``. So a ``d`` of its key in another partition of the window counts, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as F

from lakeingest.apply.window.contents import Contents
from lakeingest.apply.window.window import PipelineLog
from lakeingest.errors import DataError
from lakeingest.frame_schemas import Kind
from lakeingest.ledger.publication import Frontier
from lakeingest.plan.window import window_changes
from lakeingest.source.contract import OffsetRange, TopicPartition

_LOOKED_AT = ("topic", "partition", "offset", "key", "kind", "op")


@dataclass(frozen=True)
class Alone:
    """Null records of one partition that have no delete of their key before them.

    Attributes:
        changed: Offset of the first one behind another change of its key; None: there is none.
        unseen: Offsets of the first two that have no record of their key before them.
    """

    changed: int | None
    unseen: tuple[int, ...]


Before = Callable[[Mapping[TopicPartition, int]], DataFrame]
"""Reads the ``CHANGE`` of the records closely before these offsets, as far as they still exist."""


_CLOSELY = 8
"""Offsets in which to look for a record's predecessor: markers of Kafka transactions take some."""


def read_before(frontier: Frontier) -> frozenset[TopicPartition]:
    """Return the partitions of which something was read before."""
    return frozenset(
        TopicPartition(topic, partition)
        for topic, parts in frontier.offsets.items()
        for partition in parts
    )


def closely_before(log: PipelineLog, offsets: Mapping[TopicPartition, int]) -> DataFrame:
    """Return the changes right before these offsets, as far as they still exist."""
    marks = log.source.watermarks(sorted({place.topic for place in offsets}))
    starts = {p: max(marks[p].earliest, offset - _CLOSELY) for p, offset in offsets.items()}
    ranges = [
        OffsetRange(place.topic, place.partition, starts[place], offset)
        for place, offset in offsets.items()
        if starts[place] < offset
    ]
    return window_changes(log.read_and_learn(ranges), log.spec)


def refuse_lone_null_records(
    changes: DataFrame,
    contents: Contents,
    partitions_read: Collection[TopicPartition],
    before: Before,
) -> None:
    """Stop at a null record whose delete is missing; run a job only where there are null records.

    Args:
        changes: ``CHANGE`` of a window.
        contents: What is in it.
        partitions_read: Partitions of which something was read before.
        before: Called only where a partition that was read before begins with a null record.

    Raises:
        DataError: There is one.
    """
    where = {portion.where for portion in contents.of(Kind.NULL_RECORD)}
    if not where:
        return
    first: dict[TopicPartition, int] = {}
    for portion in contents.portions:
        first[portion.where] = min(portion.first_offset, first.get(portion.where, 2**62))
    alone = _alone(changes, {place.topic for place in where})
    in_doubt = {
        p: first[p] for p, one in alone.items() if p in partitions_read and first[p] in one.unseen
    }
    missing = _without_delete(changes, in_doubt, before) if in_doubt else frozenset()
    for place, one in sorted(alone.items()):
        offset = _missing(
            one, place in partitions_read, {first[place]} if place not in missing else set()
        )
        if offset is not None:
            raise _lone_error(place, offset)


def _missing(alone: Alone, read_before: bool, with_delete: Collection[int]) -> int | None:
    """Return the lowest offset of a null record whose delete is missing; None: there is none.

    Args:
        alone: Null records of one partition.
        read_before: Whether something of the partition was read before.
        with_delete: Offsets whose delete was read before the window.
    """
    unseen = [offset for offset in alone.unseen if read_before and offset not in with_delete]
    offsets = unseen if alone.changed is None else [alone.changed, *unseen]
    return min(offsets, default=None)


def _without_delete(
    changes: DataFrame, firsts: Mapping[TopicPartition, int], before: Before
) -> frozenset[TopicPartition]:
    """Return the partitions whose first record is a null record without a delete before it."""
    begin = reduce(
        or_,
        (
            (F.col("topic") == place.topic)
            & (F.col("partition") == place.partition)
            & (F.col("offset") == offset)
            for place, offset in firsts.items()
        ),
    )
    records = (
        before(firsts).select(*_LOOKED_AT).unionByName(changes.where(begin).select(*_LOOKED_AT))
    )
    lone = _lone(records, {place.topic for place in firsts})
    return frozenset(_place(row) for row in lone.where(begin).collect())


def _alone(changes: DataFrame, topics: Collection[str]) -> Mapping[TopicPartition, Alone]:
    unseen = F.collect_list(F.when(F.col("after_gone").isNull(), F.col("offset")))
    rows = (
        _lone(changes, topics)
        .groupBy("topic", "partition")
        .agg(
            F.min(F.when(F.col("after_gone").isNotNull(), F.col("offset"))).alias("changed"),
            F.slice(F.array_sort(unseen), 1, 2).alias("unseen"),
        )
        .collect()
    )
    return {_place(row): Alone(row["changed"], tuple(row["unseen"])) for row in rows}


def _lone(changes: DataFrame, topics: Collection[str]) -> DataFrame:
    """Return the null records to which no delete of their key belongs.

    Columns: ``topic``, ``partition``, ``offset``, and ``after_gone``: NULL where no record of the
    key lies before, else false.
    """
    anywhere = Window.partitionBy("topic", "key")
    here = Window.partitionBy("topic", "partition", "key")
    is_null = F.col("kind") == Kind.NULL_RECORD
    deletes = F.coalesce(F.col("op") == "d", F.lit(False))
    return (
        changes.where(F.col("key").isNotNull() & F.col("topic").isin(*topics))
        .select("topic", "partition", "offset", "key", is_null.alias("is_null"), deletes.alias("d"))
        .withColumn("in_all", F.count_if("d").over(anywhere))
        .withColumn("elsewhere", F.col("in_all") > F.count_if("d").over(here))
        .withColumn("after_gone", F.lag(F.col("is_null") | F.col("d")).over(here.orderBy("offset")))
        .where(F.col("is_null") & ~F.col("elsewhere"))
        .where(~F.coalesce(F.col("after_gone"), F.lit(False)))
        .select("topic", "partition", "offset", "after_gone")
    )


def _place(row: Row) -> TopicPartition:
    return TopicPartition(row["topic"], row["partition"])


def _lone_error(where: TopicPartition, offset: int) -> DataError:
    return DataError(
        f"The record at offset {offset} of '{where.topic}' partition {where.partition} is a null "
        "record, and the delete that belongs before it is missing: it would be dropped, and the "
        "row stay. A null record has no place in the source's log, so it cannot be applied where "
        "no END counts it (lakeingest.transaction.mode). If a transform unwraps the rows "
        "(ExtractNewRecordState), set its delete.tombstone.handling.mode=rewrite; if one routes "
        "rows to partitions, set the connector's tombstones.on.delete=false; if the topic is "
        "compacted, set its cleanup.policy=delete, or raise lakeingest.batch.max.events so that a "
        "first run reads it in one piece. What is in the topic already needs a topic that was "
        "repaired, or a new lake (another lakeingest.target.path). Nothing of this batch was "
        "published."
    )
