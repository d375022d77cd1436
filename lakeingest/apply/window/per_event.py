"""Settle a window of a pipeline whose events are each on their own: one batch, all that was read.

There is no END to cut at, so a window is a batch, numbered on from the one before. Where the next
one begins is an offset per partition, nothing else. A batch that a crash cut short is not found
again as it was; what tables hold of it comes once more and changes nothing, because positions
decide and not arrival.

Three things that only transactions tell are refused instead of guessed: values that a changed key
leaves out where the old key may lie in another partition (the row before may not be there yet) or
where columns of the user's order it (its delete is below its create then, not beside it), a new
snapshot (what it lacks was deleted, but when), and a null record that is a delete by itself
(``null_records.py``). A record that cannot be read ends its
partition's part of the window, so that nothing behind it is applied and then forgotten. So does a
delete that is half of a key change while the other half is not there: applied alone it would take
with it the values that the other half leaves out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakeingest.apply.batch_stats import BatchStats, batch_stats
from lakeingest.apply.order_guard import order_epoch
from lakeingest.apply.parallel import start_in_background
from lakeingest.apply.table.record_schemas import Schemas
from lakeingest.apply.window.contents import Contents, contents
from lakeingest.apply.window.initial_snapshot import (
    has_another_snapshot,
    has_new_snapshot,
    read_past,
    refused_snapshot,
)
from lakeingest.apply.window.null_records import refuse_lone_null_records
from lakeingest.apply.window.offset_ranges import WindowRanges
from lakeingest.apply.window.resnapshot_cut_over import stretches
from lakeingest.apply.window.snapshot_attempts import judged, restarted_snapshot
from lakeingest.apply.window.unreadable_records import (
    UnreadableRecords,
    refused,
    unreadable_records,
)
from lakeingest.apply.window.window import Bounds, Window
from lakeingest.engine.local_checkpoint import local_checkpoint
from lakeingest.errors import DataError
from lakeingest.frame_schemas import MOVES_ON, Kind
from lakeingest.ledger.publication import Frontier
from lakeingest.plan import window as plan
from lakeingest.plan.spec import PipelineSpec
from lakeingest.source.contract import OffsetRange, Source, TopicPartition
from lakeingest.transaction.cut import Cut

_CLOSELY = 8
"""Offsets that a record's predecessor is looked for in: marks of Kafka's transactions take some."""


def cut_events(
    source: Source,
    ranges: WindowRanges,
    frontier: Frontier,
    spec: PipelineSpec,
    bounds: Bounds,
    schemas: Schemas,
) -> Window:
    """Make one batch of a reading.

    Raises:
        DataError: A new snapshot, or (when the shares are asked for) a changed key whose left-out
            values cannot be known, or a null record without its delete.
    """
    spec = replace(spec, epochs=())
    number = max(frontier.end_offset + 1, bounds.through or 0)
    waiting = 0
    unreadable: UnreadableRecords = {}
    while True:
        decoded = plan.window_changes(source.read(ranges.data), spec)
        changes = local_checkpoint(decoded.withColumn("end_offset", F.lit(number).cast("bigint")))
        found = contents(changes, spec.format)
        halves = _halves(changes)
        here = unreadable_records(changes, found, "", spec, initial=not frontier.streaming)
        starts = {TopicPartition(part.topic, part.partition): part.start for part in ranges.data}
        if ranges.whole and any(bad.offset == starts[where] for where, bad in here.items()):
            # What lies before it was published; others must not go on without its partition.
            raise refused(here, whole=False)
        unreadable = {**unreadable, **here}
        within = _before(ranges, {w: bad.offset for w, bad in here.items()}, halves)
        if within == ranges:
            break
        waiting = len(halves)
        if not within.data:
            break
        ranges = within
    if has_new_snapshot(found, frontier):
        raise refused_snapshot()
    changes, found = _last_attempt(changes, found, ranges, frontier)
    nothing = plan.window_boundaries(plan.window_metadata(source.read([]), spec), spec)
    events = sum(p.records for p in found.of(Kind.ROW, Kind.SNAPSHOT, Kind.TRUNCATE))
    cuts = (Cut(number, number, "", 0, events),) if within.data else ()
    batched = plan.in_batches(changes, nothing, cuts, "", snapshot=False)

    def checked() -> Sequence[BatchStats]:
        before = partial(_closely_before, source, spec, schemas)
        refuse_lone_null_records(changes, found, _read_before(frontier), before)
        return _checked_stats(batch_stats(batched, spec.format), ranges, frontier, spec)

    return Window(
        ranges,
        found,
        changes,
        nothing,
        snapshot=False,
        frontier_position="",
        cuts=cuts,
        waiting=waiting,
        pending_stats=start_in_background(checked) if cuts else tuple,
        epochs=(order_epoch(spec),),
        whole=False,
        unreadable=unreadable,
    )


def _last_attempt(
    changes: DataFrame, found: Contents, ranges: WindowRanges, frontier: Frontier
) -> tuple[DataFrame, Contents]:
    """Leave out the attempts at an initial snapshot that a later one of the window replaces.

    Raises:
        DataError: Rows of an earlier attempt are in the lake, changes were streamed between two of
            them, or nothing tells which one counts.
    """
    if frontier.streaming:
        return changes, found
    if has_another_snapshot(found, frontier):
        raise restarted_snapshot()
    verdict = judged(found, read_past=read_past(found, ranges))
    if verdict.anew is not None:
        anew = stretches(changes, F.col("incarnation").eqNullSafe(F.lit(verdict.anew.run)))
        if not verdict.streamed_first(anew):
            raise refused_snapshot()
    if not verdict.superseded:
        return changes, found
    names = [(attempt.run, attempt.place) for attempt in verdict.superseded]
    return plan.without_attempts(changes, names), found.without(verdict.superseded)


def _read_before(frontier: Frontier) -> frozenset[TopicPartition]:
    """Return the partitions of which something was read before."""
    return frozenset(
        TopicPartition(topic, partition)
        for topic, parts in frontier.offsets.items()
        for partition in parts
    )


def _closely_before(
    source: Source, spec: PipelineSpec, schemas: Schemas, offsets: Mapping[TopicPartition, int]
) -> DataFrame:
    """Return the changes that lie right before these offsets, as far as they are still there."""
    marks = source.watermarks(sorted({place.topic for place in offsets}))
    starts = {p: max(marks[p].earliest, offset - _CLOSELY) for p, offset in offsets.items()}
    ranges = [
        OffsetRange(place.topic, place.partition, starts[place], offset)
        for place, offset in offsets.items()
        if starts[place] < offset
    ]
    records = source.read(ranges)
    if schemas.needed:
        # This run may have met no record of theirs yet.
        schemas.learn(records)
    return plan.window_changes(records, spec)


def _halves(changes: DataFrame) -> dict[TopicPartition, int]:
    """Return the offset of each partition's last change where its other half is not read yet."""
    rows = changes.where(F.col("kind").isin(Kind.ROW, Kind.SNAPSHOT, Kind.TRUNCATE))
    change = F.struct("offset", MOVES_ON, "collection", "position")
    last = rows.groupBy("topic", "partition").agg(F.max(change).alias("last"))
    deletes = {
        TopicPartition(row["topic"], row["partition"]): row["last"]
        for row in last.where(F.col(f"last.{MOVES_ON}")).collect()
    }
    if not deletes:
        return {}
    # The create may lie in another partition, at the same place of the source's log.
    places = [delete["position"] for delete in deletes.values()]
    creates = rows.where(F.col("moved_from").isNotNull() & F.col("position").isin(*places))
    there = {tuple(row) for row in creates.select("collection", "position").collect()}
    return {
        where: delete["offset"]
        for where, delete in deletes.items()
        if (delete["collection"], delete["position"]) not in there
    }


def _before(ranges: WindowRanges, *ends: Mapping[TopicPartition, int]) -> WindowRanges:
    """Cut the ranges of a reading off before these offsets."""
    parts = []
    for part in ranges.data:
        where = TopicPartition(part.topic, part.partition)
        end = min([part.end, *(offsets[where] for offsets in ends if where in offsets)])
        if end > part.start:
            parts.append(replace(part, end=end))
    return replace(ranges, data=tuple(parts))


def _checked_stats(
    found: Sequence[BatchStats], ranges: WindowRanges, frontier: Frontier, spec: PipelineSpec
) -> Sequence[BatchStats]:
    partitions = {topic: set(parts) for topic, parts in frontier.offsets.items()}
    for part in ranges.data:
        partitions.setdefault(part.topic, set()).add(part.partition)
    for stats in found:
        by_columns = spec.ordering.of(stats.collection)
        if stats.moved and (by_columns or len(partitions[stats.where.topic]) > 1):
            why = "it has ordering columns" if by_columns else "its topic has several partitions"
            message = (
                f"A primary-key change in table '{stats.collection}' leaves values out, and {why}: "
                "without transactions nothing tells which state of the row under its old key is "
                "meant. Set lakeingest.transaction.mode=metadata, or REPLICA IDENTITY FULL in the "
                "source, or write the topic in one partition and order it by the source's log. "
                "Nothing of this batch was published."
            )
            raise DataError(message)
    return found
