"""Cut a window of a pipeline whose events are each on their own: one batch, all that was read.

No END says where to cut, so a window is one batch, with the number after the one before. The next
window begins at one offset per partition, nothing else. After a crash in a batch, the next run
cannot restore that batch. Rows of it that tables hold already come once more and change nothing,
because positions decide and not arrival.

Three things are known only with transactions. They are refused, not guessed:

* values that a key change leaves out, where the old key may lie in another partition (its row may
  not be there yet), or where columns of the user's choice order it (its delete is then below its
  create, not beside it);
* a new snapshot (rows that it lacks were deleted, but not known when);
* a null record that is a delete by itself (``null_records.py``).

An unreadable record ends its partition's part of the window: nothing behind it is applied, because
the offset would move past it and it would be forgotten. A delete that is half of a key change ends
it, too, while the other half is not there: applied alone, it would remove the values that the other
half leaves out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakeingest.apply.batch_stats import BatchStats, batch_stats
from lakeingest.apply.guards.order import order_epoch
from lakeingest.apply.parallel import start_in_background
from lakeingest.apply.window.contents import Contents, contents
from lakeingest.apply.window.initial_snapshot import (
    has_another_snapshot,
    new_snapshot_error,
    new_snapshots,
    read_past,
)
from lakeingest.apply.window.null_records import (
    closely_before,
    read_before,
    refuse_lone_null_records,
)
from lakeingest.apply.window.offset_ranges import WindowRanges
from lakeingest.apply.window.resnapshot_cut_over import stretches
from lakeingest.apply.window.snapshot_attempts import judge_attempts, restarted_snapshot
from lakeingest.apply.window.summary import summarise
from lakeingest.apply.window.unreadable_records import (
    UnreadableRecords,
    unreadable_error,
    unreadable_records,
)
from lakeingest.apply.window.window import Bounds, PipelineLog, Window
from lakeingest.engine.local_checkpoint import local_checkpoint
from lakeingest.errors import DataError
from lakeingest.frame_schemas import MOVES_ON, Kind
from lakeingest.ledger.publication import Frontier
from lakeingest.plan.batches import in_batches, without_batch
from lakeingest.plan.snapshot_attempts import mark_superseded
from lakeingest.plan.spec import PipelineSpec
from lakeingest.plan.window import window_boundaries, window_changes, window_metadata
from lakeingest.source.contract import Source, TopicPartition
from lakeingest.transaction.cut import Cut


def cut_events(
    log: PipelineLog, ranges: WindowRanges, frontier: Frontier, bounds: Bounds
) -> Window:
    """Make one batch of a window.

    Args:
        log: The log.
        ranges: What to read of it.
        frontier: Up to where everything is applied.
        bounds: The END, if there is one, that must close the batch: its number.

    Raises:
        DataError: A new snapshot; or (when the batch statistics are read) a key change whose
            omitted values cannot be known, or a null record without its delete.
    """
    source, spec = log.source, replace(log.spec, epochs=())
    number = max(frontier.end_offset + 1, bounds.through or 0)
    waiting = 0
    unreadable: UnreadableRecords = {}
    while True:
        decoded = window_changes(log.read(ranges.data), spec)
        changes = local_checkpoint(decoded.withColumn("end_offset", F.lit(number).cast("bigint")))
        summaries = contents(summarise(without_batch(changes), spec.format))
        lone_deletes = _lone_deletes(changes, source)
        new_unreadable = unreadable_records(
            changes, summaries, "", spec, initial=not frontier.streaming
        )
        starts = {part.place: part.start for part in ranges.data}
        if ranges.whole and any(
            bad.offset == starts[where] for where, bad in new_unreadable.items()
        ):
            # All before it is published. The other partitions must not go on without this one.
            raise unreadable_error(new_unreadable, whole=False)
        unreadable = {**unreadable, **new_unreadable}
        shortened = _before(
            ranges, {w: bad.offset for w, bad in new_unreadable.items()}, lone_deletes
        )
        if shortened == ranges:
            break
        waiting = len(lone_deletes)
        if not shortened.data:
            break
        ranges = shortened
    if new_snapshots(summaries, frontier):
        raise new_snapshot_error()
    changes, summaries = _last_attempt(changes, summaries, ranges, frontier)
    no_boundaries = window_boundaries(window_metadata(source.read([]), spec), spec)
    events = sum(p.records for p in summaries.of(Kind.ROW, Kind.SNAPSHOT, Kind.TRUNCATE))
    cuts = (Cut(number, number, "", 0, events),) if shortened.data else ()
    batched = in_batches(changes, no_boundaries, cuts, "", snapshot=False)

    def check() -> Sequence[BatchStats]:
        predecessors = partial(closely_before, replace(log, spec=spec))
        refuse_lone_null_records(changes, summaries, read_before(frontier), predecessors)
        return _checked_stats(batch_stats(summarise(batched, spec.format)), ranges, frontier, spec)

    return Window(
        ranges,
        summaries,
        changes,
        no_boundaries,
        snapshot=False,
        frontier_position="",
        cuts=cuts,
        waiting=waiting,
        pending_stats=start_in_background(check) if cuts else tuple,
        epochs=(order_epoch(spec),),
        whole=False,
        unreadable=unreadable,
    )


def _last_attempt(
    changes: DataFrame, summaries: Contents, ranges: WindowRanges, frontier: Frontier
) -> tuple[DataFrame, Contents]:
    """Leave out the attempts at an initial snapshot that a later one of the window replaces.

    Raises:
        DataError: Rows of an earlier attempt are in the lake, changes were streamed between two of
            them, or nothing shows which one counts.
    """
    if frontier.streaming:
        return changes, summaries
    if has_another_snapshot(summaries, frontier):
        raise restarted_snapshot()
    verdict = judge_attempts(summaries, read_past=read_past(summaries, ranges))
    if verdict.anew is not None:
        incarnations = stretches(changes, {verdict.anew.run})
        if not verdict.streamed_first(incarnations):
            raise new_snapshot_error()
    if not verdict.superseded:
        return changes, summaries
    names = [(attempt.run, attempt.place) for attempt in verdict.superseded]
    return mark_superseded(changes, names), summaries.without(verdict.superseded)


def _lone_deletes(changes: DataFrame, source: Source) -> dict[TopicPartition, int]:
    """Return the offset of each topic's last change if it is half of a key change.

    It is a delete, and the create that belongs to it is not read yet. In a topic of several
    partitions the create may lie in another one and have been read long ago: there, a delete that
    waited for it might wait for ever.
    """
    rows = changes.where(F.col("kind").isin(Kind.ROW, Kind.SNAPSHOT, Kind.TRUNCATE))
    change = F.struct("offset", MOVES_ON)
    last = rows.groupBy("topic", "partition").agg(F.max(change).alias("last"))
    deletes = {
        TopicPartition(row["topic"], row["partition"]): row["last"]["offset"]
        for row in last.where(F.col(f"last.{MOVES_ON}")).collect()
    }
    if not deletes:
        return {}
    topics = sorted({place.topic for place in deletes})
    partitions = Counter(place.topic for place in source.watermarks(topics))
    return {where: offset for where, offset in deletes.items() if partitions[where.topic] == 1}


def _before(ranges: WindowRanges, *ends: Mapping[TopicPartition, int]) -> WindowRanges:
    """Cut the ranges of a window off before these offsets."""
    parts = []
    for part in ranges.data:
        where = part.place
        end = min([part.end, *(offsets[where] for offsets in ends if where in offsets)])
        if end > part.start:
            parts.append(replace(part, end=end))
    return replace(ranges, data=tuple(parts))


def _checked_stats(
    window_stats: Sequence[BatchStats], ranges: WindowRanges, frontier: Frontier, spec: PipelineSpec
) -> Sequence[BatchStats]:
    """Return the statistics; stop at a key change whose omitted values cannot be known."""
    partitions = {topic: set(parts) for topic, parts in frontier.offsets.items()}
    for part in ranges.data:
        partitions.setdefault(part.topic, set()).add(part.partition)
    for stats in window_stats:
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
    return window_stats
