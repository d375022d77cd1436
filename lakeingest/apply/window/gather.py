"""Ask a window what a decision about it needs to know, in as few questions as can be.

To plan a query takes as long as to run it. So the ENDs, the records and the counts of rows are a
query each, and the counts are made beside the others. ``decide.py`` has the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from lakeingest.apply.batch_stats import BatchStats, batch_stats
from lakeingest.apply.parallel import in_background, start_in_background
from lakeingest.apply.window.contents import Contents, contents
from lakeingest.apply.window.decide import Replan, likely_cuts, replan
from lakeingest.apply.window.end_markers import read_end_markers, refuse_disorder
from lakeingest.apply.window.facts import WindowFacts
from lakeingest.apply.window.failover_epochs import find_new_epochs
from lakeingest.apply.window.incomplete_transaction import (
    first_interrupted,
    first_short,
    missing_rows,
)
from lakeingest.apply.window.initial_snapshot import new_snapshots, read_past
from lakeingest.apply.window.null_records import (
    closely_before,
    read_before,
    refuse_lone_null_records,
)
from lakeingest.apply.window.offset_ranges import WindowRanges
from lakeingest.apply.window.resnapshot_cut_over import stretches, with_own_counts
from lakeingest.apply.window.row_ends import (
    read_settled,
    refuse_other_servers,
    refuse_shared_places,
)
from lakeingest.apply.window.snapshot_attempts import Verdict, judge_attempts, late_attempts
from lakeingest.apply.window.summary import summarise
from lakeingest.apply.window.unreadable_records import unreadable_records
from lakeingest.apply.window.window import Bounds, PipelineLog
from lakeingest.decode.wire import WireFormat
from lakeingest.engine.local_checkpoint import local_checkpoint
from lakeingest.ledger.publication import Frontier
from lakeingest.plan.batches import in_batches, without_batch
from lakeingest.plan.end_positions import (
    release_limit,
    some_positions_from_rows,
    with_positions_from_rows,
    without_open_transactions,
)
from lakeingest.plan.row_boundaries import as_metadata, row_boundaries
from lakeingest.plan.snapshot_attempts import mark_superseded
from lakeingest.plan.window import (
    window_boundaries,
    window_changes,
    window_metadata,
    without_row_after_begin,
)
from lakeingest.position.epochs import Epoch
from lakeingest.transaction.completeness import rows_by_place, with_end_offset
from lakeingest.transaction.cut import Cut


@dataclass(frozen=True)
class WindowFrames:
    """Frames of a window, over checkpoints but for ``metadata``.

    Attributes:
        metadata: Its part of the transaction topic, decoded (``plan.window.window_metadata``).
        ended: ``BOUNDARY`` of the transactions that are over.
        boundaries: Those of them that were not released before.
        changes: ``CHANGE`` with ``end_offset``.
        below: Position above everything that was released before.
    """

    metadata: DataFrame
    ended: DataFrame
    boundaries: DataFrame
    changes: DataFrame
    below: str

    def begin_stats(
        self, cuts: Sequence[Cut], format_: WireFormat, *, snapshot: bool
    ) -> Callable[[], Sequence[BatchStats]]:
        """Begin to compute the statistics of batches; return a function that waits for them."""

        def stats() -> Sequence[BatchStats]:
            return batch_stats(self.summarise(cuts, format_, snapshot=snapshot))

        return start_in_background(stats)

    def summarise(
        self, cuts: Sequence[Cut], format_: WireFormat, *, snapshot: bool
    ) -> Sequence[Row]:
        """Summarise the window (``summary.summarise``), by the batches of these cuts."""
        if cuts or snapshot:
            batched = in_batches(self.changes, self.boundaries, cuts, self.below, snapshot=snapshot)
        else:
            batched = without_batch(self.changes)
        return summarise(batched, format_, self.below)


@dataclass(frozen=True)
class Gathered:
    """A window that was read, and what it showed.

    Attributes:
        frames: Its frames, without superseded attempts and rows sent twice.
        facts: What a decision needs.
        epochs: Epochs of its transactions and of all before.
        likely: The cuts whose statistics are known.
        likely_stats: These statistics, and those of an initial snapshot if the window ends it.
    """

    frames: WindowFrames
    facts: WindowFacts
    epochs: tuple[Epoch, ...]
    likely: tuple[Cut, ...]
    likely_stats: Sequence[BatchStats]


def gather(
    log: PipelineLog, ranges: WindowRanges, frontier: Frontier, bounds: Bounds
) -> Gathered | Replan:
    """Read a window and ask it what a decision needs.

    Args:
        log: The log.
        ranges: What to read of it.
        frontier: Up to where everything is applied.
        bounds: Bounds of batches.

    Raises:
        DataError: A record of the transaction topic cannot be read; the order of commits is not
            that of the topic; or nothing shows which attempt at a snapshot counts.
    """
    spec = log.spec
    metadata, topic, decoded = _decoded(log, ranges, frontier)
    settled = read_settled(decoded, bounds) if spec.by_rows else None
    ended = without_open_transactions(topic)
    fresh = ended.where(F.col("end_position") > F.lit(frontier.end_position))
    below = release_limit(frontier.end_position)
    with in_background(partial(read_end_markers, topic, spec)) as pending_ends:
        changes = local_checkpoint(with_end_offset(decoded, fresh))
        frames = WindowFrames(metadata, ended, fresh, changes, below)
        # Nothing but END counts rows.
        counting = partial(first_short, changes, fresh, log.counted, bounds.in_part)
        short = _none if spec.by_rows else counting
        with in_background(short) as pending_short:
            markers = pending_ends()
            if spec.by_rows:
                refuse_other_servers(markers.domains | {epoch.domain for epoch in spec.epochs})
                refuse_shared_places(markers.ends)
            epochs = find_new_epochs(metadata, markers.domains, frontier, spec)
            again = replan(epochs, spec.epochs, frontier)
            if again is not None:
                return again
            facts = WindowFacts(ranges, markers.ends, markers.opened, settled=settled)
            refuse_disorder(facts.ends_behind(frontier), spec, frontier.end_position)
            likely = likely_cuts(facts, frontier, bounds)
            summaries = frames.summarise(likely, spec.format, snapshot=not frontier.streaming)
            likely_stats = batch_stats(summaries)
            facts, frames = _with_contents(facts, frames, contents(summaries), log, frontier)
            if spec.by_rows:
                refuse_lone_null_records(
                    frames.changes,
                    facts.contents,
                    read_before(frontier),
                    partial(closely_before, log),
                )
            if facts.new_snapshot and bounds.snapshot_again:
                runs = {taken.run for taken in new_snapshots(facts.contents, frontier)}
                facts = _with_stretches(facts, frames, log, runs)
            if not facts.has_resnapshot:
                facts, frames = _with_rows(facts, frames, log, frontier, bounds.in_part)
                if facts.ends_behind(frontier):
                    facts = replace(facts, short=pending_short())
    return Gathered(frames, facts, epochs, likely, likely_stats)


def _decoded(
    log: PipelineLog, ranges: WindowRanges, frontier: Frontier
) -> tuple[DataFrame, DataFrame, DataFrame]:
    """Return metadata, boundaries and changes of a window."""
    spec = log.spec
    if spec.by_rows:
        decoded = local_checkpoint(window_changes(log.read(ranges.data), spec))
        topic = local_checkpoint(row_boundaries(decoded, spec))
        return as_metadata(topic), topic, decoded
    markers = log.read([ranges.transactions] if ranges.transactions else [])
    # Hardly a window asks for it again (epochs, repeated BEGINs), so it is not kept.
    metadata = window_metadata(markers, spec)
    topic = local_checkpoint(window_boundaries(metadata, spec))
    decoded = window_changes(log.read(ranges.data), spec)
    if some_positions_from_rows(spec):
        decoded = local_checkpoint(decoded)
        topic = local_checkpoint(
            with_positions_from_rows(topic, decoded, spec, frontier.end_position)
        )
    return metadata, topic, decoded


def _none() -> None:
    """Return that no transaction is known to lack a row."""


def _with_contents(
    facts: WindowFacts,
    frames: WindowFrames,
    summary: Contents,
    log: PipelineLog,
    frontier: Frontier,
) -> tuple[WindowFacts, WindowFrames]:
    """Add what the window holds, without the attempts at a snapshot that a later one replaces.

    Tables that a later attempt seems to lack may lie further on. So a window that ends in the
    middle of a snapshot is not judged; nothing of that snapshot is released.
    """
    if new_snapshots(summary, frontier):
        return replace(facts, contents=summary, new_snapshot=True), frames
    if frontier.streaming:
        verdict = Verdict(late_attempts(summary, frontier))
    else:
        verdict = judge_attempts(summary) if read_past(summary, facts.ranges) else Verdict()
    if verdict.anew is not None:
        facts = _with_stretches(facts, frames, log, {verdict.anew.run})
    if verdict.superseded:
        names = [(attempt.run, attempt.place) for attempt in verdict.superseded]
        frames = replace(frames, changes=mark_superseded(frames.changes, names))
        summary = summary.without(verdict.superseded)
    return replace(facts, contents=summary, attempts=verdict), frames


def _with_stretches(
    facts: WindowFacts, frames: WindowFrames, log: PipelineLog, runs: Collection[str | None]
) -> WindowFacts:
    """Add what shows where the snapshot of these incarnations cuts the log."""
    changes = with_end_offset(frames.changes.drop("end_offset"), frames.ended)
    ends = with_own_counts(facts.ends, frames.ended, log.counted)
    return replace(facts, stretches=stretches(changes, runs), own_ends=ends)


def _with_rows(
    facts: WindowFacts,
    frames: WindowFrames,
    log: PipelineLog,
    frontier: Frontier,
    in_part: frozenset[int],
) -> tuple[WindowFacts, WindowFrames]:
    """Add what takes questions of its own, in the few windows that raise them."""
    initial = not frontier.streaming
    unreadable = unreadable_records(
        frames.changes, facts.contents, frames.below, log.spec, initial=initial
    )
    stopped = {where: record.reached for where, record in unreadable.items()}
    facts = replace(facts, unreadable=unreadable, contents=replace(facts.contents, stopped=stopped))
    if initial:
        # After the reading: a topic that was made meanwhile may hold rows of the snapshot.
        facts = replace(facts, topics=frozenset(log.source.topics()))
    lacking = in_part.intersection(end.offset for end in facts.ends_behind(frontier))
    if lacking:
        missing = missing_rows(frames.changes, frames.boundaries, log.counted, lacking)
        facts = replace(facts, in_part=missing)
    if facts.has_repeats(frontier):
        changes, fresh = frames.changes, frames.boundaries
        records = log.read(facts.ranges.data)
        unresumed = without_row_after_begin(
            changes, fresh, log.counted, frames.metadata, records, log.spec
        )
        once = local_checkpoint(rows_by_place(changes, fresh))
        frames = replace(frames, changes=once)
        interrupted = first_interrupted(once, fresh, log.counted, unresumed, in_part)
        facts = replace(facts, interrupted=interrupted)
    return facts, frames
