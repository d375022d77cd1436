"""Find the unreadable records of a window, what they block, and the message about them.

This is a job of its own, which runs only where a window holds such records: a normal window pays
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from lakeingest.apply.window.contents import Contents
from lakeingest.errors import ConfigError, DataError, LakeingestError
from lakeingest.frame_schemas import Kind
from lakeingest.plan.spec import PipelineSpec
from lakeingest.source.contract import TopicPartition
from lakeingest.transaction.unreadable import UNREADABLE, unreplaced_records


@dataclass(frozen=True)
class Unreadable:
    """The unreadable records of one partition that no later record replaces.

    Attributes:
        where: The partition.
        offset: Offset of the first one.
        records: How many there are in the window.
        reached: Highest position of a streamed row before the first one; empty: there is none.
        kind: Kind of the first one.
        has_op: Whether the first one says which operation it is.
    """

    where: TopicPartition
    offset: int
    records: int
    reached: str
    kind: str = Kind.MALFORMED
    has_op: bool = False


_NAME = ("topic", "partition", "offset")

UnreadableRecords = Mapping[TopicPartition, Unreadable]


def unreadable_records(
    changes: DataFrame, contents: Contents, released: str, spec: PipelineSpec, *, initial: bool
) -> UnreadableRecords:
    """Find the unreadable records that block a window, by partition.

    Args:
        changes: ``CHANGE`` of a window.
        contents: What is in it.
        released: Position below which every transaction was released.
        spec: Pipeline settings. Where a user's columns order rows, positions do not show what was
            sent again: then each unreadable record blocks unless it is to be skipped.
        initial: Whether the initial snapshot was not released yet.
    """
    places = sorted({portion.where for portion in contents.of(*UNREADABLE)})
    if not places:
        return {}
    ours = changes.where(reduce(or_, map(_at, places)))
    unreadable = F.col("kind").isin(*UNREADABLE)
    if spec.skipped:
        ours = ours.where(~(unreadable & F.concat_ws(":", *_NAME).isin(*spec.skipped)))
    if spec.ordering:
        ours = ours.where(unreadable)
    blocking = map(
        _of_partition,
        unreplaced_records(ours, released, initial=initial, counted=not spec.by_rows).collect(),
    )
    return {record.where: record for record in blocking}


def _of_partition(row: Row) -> Unreadable:
    first = row["first"]
    return Unreadable(
        TopicPartition(row["topic"], row["partition"]),
        first["offset"],
        row["records"],
        first["reached"],
        first["kind"],
        first["op"] is not None,
    )


def _at(place: TopicPartition) -> Column:
    return (F.col("topic") == place.topic) & (F.col("partition") == place.partition)


_BROKEN = (
    "it is broken (text that is no UTF-8, JSON that breaks off or has something behind it, Avro "
    "that does not fit its schema), or has no table or no position in its source block, or is a "
    "flattened row without the fields that lakeingest.source.envelope=flattened needs"
)
_UNORDERED = (
    "; or it has no number or timestamp in an ordering column, which a delete has with REPLICA "
    "IDENTITY FULL only and a truncate never"
)
_SEND_AGAIN = (
    "Write the record again as it should be, to the same partition and with the same key. If this "
    "message stays (a record without a key, or the first one behind a snapshot, is not always "
    "recognised there), or if it is no change of a table, list the broken one in "
    "lakeingest.source.skip.records as"
)


def unreadable_error(unreadable: UnreadableRecords, *, whole: bool) -> LakeingestError:
    """Return the error for the unreadable records of a window that gave no batch.

    Args:
        unreadable: Unreadable records by partition; at least one.
        whole: Whether batches hold whole transactions.
    """
    first = min(
        unreadable.values(), key=lambda one: (one.kind != Kind.UNKNOWN, one.where, one.offset)
    )
    total = sum(one.records for one in unreadable.values())
    where = (
        f"The record at offset {first.offset} of '{first.where.topic}' partition "
        f"{first.where.partition}"
    )
    name = f"{first.where.topic}:{first.where.partition}:{first.offset}"
    again = f"{_SEND_AGAIN} {name}."
    more = f" ({total} such records in all)" if total > 1 else ""
    rest = (
        "Nothing is published that may lie behind it in the source's log."
        if whole
        else "Of its partition nothing behind it is published."
    )
    if first.kind == Kind.UNKNOWN and not first.has_op:
        return ConfigError(
            f"{where} is not a Debezium event{more}: it has no operation (op). {rest} If a "
            "transform unwraps the rows (ExtractNewRecordState), set "
            "lakeingest.source.envelope=flattened; if no table writes to this topic, leave it out "
            "in lakeingest.source.topics; if only this record is not an event, list it in "
            f"lakeingest.source.skip.records as {name}."
        )
    if first.kind == Kind.UNKNOWN:
        return DataError(
            f"{where} has an operation (op) other than c, u, d, r, t and m{more}. {rest} {again}"
        )
    reasons = _BROKEN if whole else _BROKEN + _UNORDERED
    return DataError(f"{where} cannot be read{more}: {reasons}. {rest} {again}")
