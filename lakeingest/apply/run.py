"""Run the loop: read a window, take over the lake, apply its batches, publish each.

A run applies everything available and ends; a continuous run repeats that. Between windows a run
remembers only the lake's own state, so a run that starts after a crash and one that goes on execute
the same code. (A window with nothing to publish is remembered while the log does not grow.)
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from functools import partial

from pyspark.sql import SparkSession

from lakeingest.apply.adoption.adopt import Adoption, adopted_collections
from lakeingest.apply.as_published import as_published, refuse_other_tables, refuse_unsuited
from lakeingest.apply.attempts import Attempts
from lakeingest.apply.batch.prepare import prepare
from lakeingest.apply.batch.writer import BatchWriter
from lakeingest.apply.choice.retirement import rows_since
from lakeingest.apply.factory import (
    open_adoption,
    open_ledger,
    open_sink,
    refuse_unfenced,
    storage_of,
)
from lakeingest.apply.failpoints import failpoint
from lakeingest.apply.failure import classify_failure
from lakeingest.apply.guards.connector import refuse_other_connector
from lakeingest.apply.guards.order import refuse_another_order
from lakeingest.apply.guards.unmatched_tables import without_topic
from lakeingest.apply.lake import (
    LakeState,
    read_lake,
    refuse_other_owner,
    release_on_exit,
    same_progress,
    take_over,
    with_unpublished,
)
from lakeingest.apply.maintenance.turn import Turns, open_turns
from lakeingest.apply.next_publication import clock_ms
from lakeingest.apply.pace import Pace
from lakeingest.apply.parallel import in_background
from lakeingest.apply.pipeline_spec import pipeline_log
from lakeingest.apply.run_session import run_session
from lakeingest.apply.stall_detection import (
    in_part_warning,
    is_superseded,
    patience_of,
    refuse_if_lost,
    refuse_stall,
)
from lakeingest.apply.summary import BatchSummary, RunSummary, Tally
from lakeingest.apply.table.catalog import TableBook, Warnings
from lakeingest.apply.table.new_tables import FirstSeen, likely_tables
from lakeingest.apply.table.record_schemas import Schemas, open_schemas
from lakeingest.apply.window.batch_size import BatchSize, bounds_of
from lakeingest.apply.window.prefetch import WindowReader
from lakeingest.apply.window.progress import (
    fills_new_table,
    frontier_behind,
    is_due,
    progress_alone,
)
from lakeingest.apply.window.resnapshot_cut_over import SnapshotCutOver, open_epoch
from lakeingest.apply.window.window import Window
from lakeingest.config.model import PipelineConfig
from lakeingest.engine.job_count import JobCounter
from lakeingest.engine.storage_errors import storage
from lakeingest.errors import FencedError, LakeingestError
from lakeingest.ledger.publication import Publication
from lakeingest.source import open_source
from lakeingest.source.contract import Source


class PipelineRun:
    """One run of one pipeline."""

    def __init__(
        self,
        spark: SparkSession,
        config: PipelineConfig,
        source: Source,
        schemas: Schemas,
        on_batch: Callable[[BatchSummary], None] | None,
    ) -> None:
        """Bind source, sinks and ledger; read nothing yet."""
        self._spark = spark
        self._config = config
        self._source = source
        self._on_batch = on_batch
        self._run = uuid.uuid4().hex
        self._log = pipeline_log(config, source, schemas)
        self._spec = self._log.spec
        self._warnings = Warnings(config.warnings, logs=True)
        refuse_unfenced(spark, config)
        self._sink = open_sink(spark, config)
        self._ledger = open_ledger(spark, config, self._run)
        book = TableBook(spark, config, self._spec, self._sink, self._warnings.add)
        self._writer = BatchWriter(
            self._sink,
            self._ledger,
            book,
            self._spec,
            config.name,
            self._run,
            config.folders,
            JobCounter(spark),
            in_turn=config.commit_max_transactions is not None and config.commit_mode == "grouped",
        )
        self._turns = open_turns(spark, config, self._sink, self._ledger, self._run)
        self._tally = Tally()
        self._checked_window: Window | None = None
        self._published_state: LakeState | None = None
        self._has_claimed = False

    def go(
        self, *, continuous: bool, min_sync_interval_seconds: float, max_batches: int | None
    ) -> RunSummary:
        """Run until nothing more is available (or for ever, or for ``max_batches``)."""
        began, jobs = time.monotonic(), JobCounter(self._spark)
        pace, config = Pace(min_sync_interval_seconds), self._config
        self._patience = patience_of(config, continuous=continuous)
        self._size = BatchSize.of(config.batch_max_events, config.window_max_records)
        bounds = bounds_of(self._spark, config, self._size.events)
        self._reader = WindowReader(
            self._log, bounds, self._size.window, config.window_max_bytes, endless=continuous
        )
        self._adopt()
        state = self._read_lake()
        unmatched = without_topic(config, self._source.topics(), state.head.tables)
        self._warnings.add(*unmatched, *rows_since(self._source, state.head.retired))
        refuse_other_connector(state.head, self._log)
        refuse_another_order(state.head, self._spec)
        self._attempts = attempts = Attempts(
            partial(classify_failure, source=self._source, roots=storage_of(self._config)),
            self._warnings.add,
            reached=state.head.batch > 0,
        )
        with release_on_exit(self._ledger, lambda: self._published_state):
            while True:
                window_began = time.monotonic()
                batches_left = None if max_batches is None else max_batches - self._tally.batches
                if batches_left is not None and batches_left <= 0:
                    break
                try:
                    if attempts.failures:
                        state = self._read_lake(before=state)
                    before = self._tally.written
                    window_state, progress = self._window(state, batches_left)
                    self._published_state = window_state
                    written = self._tally.written - before
                    if progress and self._turns is not None:
                        window_state = self._maintained(self._turns, state, window_state, written)
                    state = window_state
                except Exception as error:
                    failure = attempts.after(error)
                    if failure is None:
                        continue
                    if failure is error:
                        raise
                    raise failure from error
                attempts.succeeded()
                if not (progress or continuous):
                    break
                if not progress or (continuous and written):
                    pace.wait(window_began, is_idle=not progress)
        self._sink.finish()
        seconds, warnings = time.monotonic() - began, self._warnings.all()
        return self._tally.summary(state.head, config.source, seconds, jobs.since_last(), warnings)

    def _adopt(self) -> None:
        """Adopt the tables that the configuration names for it; most pipelines have none."""
        config = self._config
        if adopted_collections(config):
            tables = open_adoption(self._spark, config)
            Adoption(config, self._log, tables, self._ledger, self._run).adopt(
                self._source.topics()
            )

    def _read_lake(self, before: LakeState | None = None) -> LakeState:
        """Read the lake.

        Args:
            before: State that this run had before a window failed; None: the run begins.

        Raises:
            FencedError: Another driver has claimed the lake from this run.
        """
        collections = likely_tables(self._config, self._source.topics())
        state = read_lake(self._ledger, self._sink, collections, self._config.folders)
        refuse_other_tables(state.head, self._config)
        refuse_unsuited(self._config, state.head)
        self._first_seen = FirstSeen(self._config, self._sink)
        if before is not None:
            if self._has_claimed:
                refuse_other_owner(state.head, self._run)
            self._reader.forget()
            self._writer.book.forget()
        return state

    def _window(self, state: LakeState, batches_left: int | None) -> tuple[LakeState, bool]:
        """Apply one window; return whether to read the next one at once."""
        window = self._reader.read(state.head.frontier, state.through)
        if window is None:
            refuse_if_lost(state.through)
            return state, False
        self._tally.pending = window.waiting
        self._warnings.add(*window.ranges.accepted)
        if window is not self._checked_window:
            complete = self._first_seen.states(window, state)
            if complete.through != state.through:
                # A killed run wrote a table that nobody knew of: read again up to its END.
                return complete, True
            state = complete
            replaces = self._config.source.replaces_tables
            if is_superseded(window, self._ledger, state, replaces=replaces):
                if window.cut_over is not None:
                    return self._open_epoch(window.cut_over, state), True
                self._reader.enlarge(window, state.through)
                return state, True
            self._checked_window = window
        if not window.batches:
            return self._without_batches(window, state)
        return self._write(window, state, batches_left), True

    def _maintained(
        self, turns: Turns, before: LakeState, state: LakeState, batches: int
    ) -> LakeState:
        """Maintain the tables whose turn has come; neither a failure nor its table ends the run.

        Raises:
            FencedError: Another driver has claimed the lake from this run.
        """
        self._published_state = None
        try:
            state = turns.after(before, state, batches)
        except FencedError:
            raise
        except Exception as error:  # noqa: BLE001 - rows are not at stake
            reason = str(error) if isinstance(error, LakeingestError) else type(error).__name__
            self._warnings.add(
                f"Maintenance failed ({reason}), and the run went on. lakeingest maintain does the "
                "same, and shows the error."
            )
            if self._ledger.head().batch != state.head.batch:
                state = replace(self._read_lake(before=state), ours=True)
        self._published_state = state
        return state

    def _write(self, window: Window, state: LakeState, limit: int | None = None) -> LakeState:
        """Apply and publish batches of a window."""
        failpoint("2.planned")
        batches = window.batches
        if self._config.commit_mode == "per-transaction":
            state = with_unpublished(state, self._sink)
        # Take over the lake and prepare the first batch in parallel: neither needs the other.
        with in_background(
            partial(prepare, window, batches[0], state, self._writer.book)
        ) as first_batch:
            claimed = self._claim(state)
            if not same_progress(state, claimed):
                # The preparation adds to the book until it is over.
                with suppress(Exception):
                    first_batch()
                self._writer.book.forget()
                return claimed
            state = claimed
            prepared = first_batch()
        if limit is None or limit > len(batches):
            self._reader.begin_next(window, batches, state.head.frontier)
        self._published_state = None
        return self._writer.write(window, batches[:limit], state, prepared, self._report, limit)

    def _claim(self, state: LakeState) -> LakeState:
        """Claim the lake, if this run has not done so yet.

        After the claim this run has written nothing of its own. So if it fails before it writes, it
        releases the lake. Else a run that fails each minute would have all tables fenced each time.

        Raises:
            FencedError: Another run claimed it, or a command chose other tables since this run
                began.
        """
        if state.ours:
            return state
        claimed = take_over(self._ledger, self._sink, state)
        self._has_claimed = True
        self._published_state = claimed
        refuse_other_tables(claimed.head, self._config)
        if not same_progress(state, claimed):
            # Another driver published: check its lake as at the beginning, and read the states of
            # the window's tables again, though the window is the same.
            refuse_unsuited(self._config, claimed.head)
            refuse_another_order(claimed.head, self._spec)
            self._checked_window = None
        return claimed

    def _report(self, summary: BatchSummary) -> None:
        self._attempts.succeeded()
        self._tally.add(summary)
        self._size = self._size.after(summary.events, summary.seconds)
        self._reader.aim(self._size.events, self._size.window)
        if self._on_batch is not None:
            self._on_batch(summary)

    def _without_batches(self, window: Window, state: LakeState) -> tuple[LakeState, bool]:
        unfinished = window.is_unfinished(state.through)
        if not unfinished:
            if window.cut_over is not None and state.through is None:
                return self._open_epoch(window.cut_over, state), True
            names, uncounted = self._config.source.names, self._config.uncounted_collections
            lacking = refuse_stall(window, self._patience, names, uncounted)
            if lacking is not None:
                self._reader.release_in_part(lacking.end_offset)
                self._warnings.add(in_part_warning(lacking))
                return state, True
            if window.awaited:
                self._warnings.add(window.awaited)
            if not window.waiting:
                refuse_if_lost(state.through)
        behind = frontier_behind(window, state.head.frontier, clock_ms())
        fills = fills_new_table(window, state.head)
        is_due_now = fills or is_due(state.head, behind, clock_ms())
        if not (unfinished and fills) and state.through is None and is_due_now:
            if window.redelivered and (fills or window.contents.redelivered()):
                return self._write(window.redelivered(), state), True
            progress = partial(progress_alone, behind=behind, run=self._run)
            return self._publish_alone(progress, state), True
        if unfinished:
            self._reader.enlarge(window, state.through)
        return state, unfinished

    def _open_epoch(self, cut_over: SnapshotCutOver, state: LakeState) -> LakeState:
        """Go on behind a snapshot cut-over; the snapshot has what was not applied before it."""
        return self._publish_alone(partial(open_epoch, cut=cut_over, run=self._run), state)

    def _publish_alone(
        self, publication_after: Callable[[Publication], Publication], state: LakeState
    ) -> LakeState:
        """Publish a frontier; no table changes."""
        claimed = self._claim(state)
        if not same_progress(state, claimed):
            return claimed
        state = claimed
        refuse_if_lost(state.through)
        publication = state.unchanged(publication_after(state.head), self._config.folders)
        self._published_state = None
        self._ledger.publish_alone(publication)
        self._report(BatchSummary(publication.batch, 0, 0, 0.0, {}))
        return state.published(publication, {})


def run_pipeline(
    spark: SparkSession,
    config: PipelineConfig,
    *,
    source: Source | None = None,
    continuous: bool = False,
    min_sync_interval_seconds: float = 0.0,
    max_batches: int | None = None,
    on_batch: Callable[[BatchSummary], None] | None = None,
) -> RunSummary:
    """Apply everything available and publish it.

    What the source commits meanwhile is left to the next run, or to a continuous one.

    Args:
        spark: Session with Delta (``lakeingest.session.session``).
        config: The pipeline.
        source: Source of the records; None: the configured one.
        continuous: Go on as new records arrive, until the process is stopped.
        min_sync_interval_seconds: Least time between the starts of two windows of a continuous run.
        max_batches: Stop after so many publications.
        on_batch: Called after each publication.

    Raises:
        LakeingestError: See ``errors``; what was published before it stays published.
    """
    own = run_session(spark)
    with ExitStack() as resources:
        resources.enter_context(storage(*storage_of(config)))
        config = as_published(config, open_ledger(own, config, "").head())
        records = resources.enter_context(closing(source or open_source(own, config.source)))
        schemas = resources.enter_context(closing(open_schemas(own, config.source)))
        run = PipelineRun(own, config, records, schemas, on_batch)
        return run.go(
            continuous=continuous,
            min_sync_interval_seconds=min_sync_interval_seconds,
            max_batches=max_batches,
        )
