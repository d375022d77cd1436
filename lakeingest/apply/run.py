"""The loop of a run: read a window, take over the lake, apply its batches, publish each.

Everything that is available, then the end; or, continuous, the same again and again. Nothing is
remembered between windows but the lake's own state, so a run that starts after a crash and one
that goes on are the same code.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from lakeingest.apply.adoption import Adoption, adopted_collections
from lakeingest.apply.batch import BatchWriter
from lakeingest.apply.failpoints import failpoint
from lakeingest.apply.lake import LakeState, read_lake, same_progress, take_over
from lakeingest.apply.opening import (
    opened_adoption,
    opened_ledger,
    opened_sink,
    storage_of,
)
from lakeingest.apply.order import refuse_another_order
from lakeingest.apply.prepared import prepare
from lakeingest.apply.reading import WindowReader
from lakeingest.apply.schemas import Schemas, opened_schemas
from lakeingest.apply.seam import Seam, opening
from lakeingest.apply.side_by_side import in_background
from lakeingest.apply.stuck import Patience, refuse_if_lost, refuse_if_stuck, refuse_unknown_ends
from lakeingest.apply.summary import BatchSummary, RunSummary
from lakeingest.apply.tables import TableBook, Warnings
from lakeingest.apply.unread import without_topic
from lakeingest.apply.window import Window
from lakeingest.config.model import PipelineConfig
from lakeingest.decode.columns import Encodings
from lakeingest.decode.wire import WireFormat
from lakeingest.engine.own_session import own_session
from lakeingest.engine.remembered_names import remember_names
from lakeingest.engine.storage_errors import storage
from lakeingest.plan.spec import Ordering, PipelineSpec
from lakeingest.plan.window import SNAPSHOT_BATCH, is_counted
from lakeingest.source import open_source
from lakeingest.source.bounds import data_loss_error
from lakeingest.source.contract import Source

_HANDFUL = 16
"""Shuffle partitions up to which adaptive execution is left out."""

IDLE_SECONDS = 1.0
"""Pause of a continuous run after a window that brought nothing."""


def pipeline_spec(config: PipelineConfig, wire: WireFormat) -> PipelineSpec:
    """Return the planning settings of a configuration.

    Args:
        config: The pipeline.
        wire: How its records are read, by what is known of their schemas (``Schemas.format``).
    """
    encodings = Encodings(
        decimal=config.source.decimal_mode,
        binary=config.source.binary_mode,
        placeholder=config.unavailable_placeholder,
        time=config.source.time_mode,
        decimal_format=config.source.decimal_format,
        infinite=config.infinite_times,
        # Only PostgreSQL keeps values out of line and leaves them out of a change.
        ambiguous=config.ambiguous_nulls if config.source.connector == "postgresql" else "null",
    )
    return PipelineSpec(
        config.source.connector,
        encodings,
        config.metadata(),
        format=wire,
        uncounted=config.uncounted_collections,
        whole=config.source.ends_topic is not None,
        ordering=Ordering(
            config.source.ordering_columns,
            {
                name: table.ordering_columns
                for name, table in config.tables.items()
                if table.ordering_columns
            },
        ),
    )


def counted(config: PipelineConfig) -> Column:
    """Condition over ``data_collection``: the configuration reads this collection's topic."""
    source = config.source
    topic = F.concat(F.lit(f"{source.topic_prefix}."), F.col("data_collection"))
    selected = None
    if source.topics:
        selected = topic.isin(*source.topics)
    elif source.topic_pattern is not None:
        selected = topic.rlike(f"^(?:{source.topic_pattern})$")
    return is_counted(selected, config.uncounted_collections)


@dataclass
class _Tally:
    """Adds up what a run did."""

    batches: int = 0
    transactions: int = 0
    events: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    pending: int = 0

    def add(self, batch: BatchSummary) -> None:
        self.batches += 1
        self.transactions += batch.transactions
        self.events += batch.events
        self.rows.update(batch.tables)


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
        """Bind sources, sinks and ledger; reads nothing yet."""
        self._spark = spark
        self._config = config
        self._source = source
        self._on_batch = on_batch
        self._run = uuid.uuid4().hex
        self._schemas = schemas
        self._spec = pipeline_spec(config, schemas.format)
        self._warnings = Warnings()
        for text in config.warnings:
            self._warnings.add(text)
        self._sink = opened_sink(spark, config)
        self._ledger = opened_ledger(spark, config, self._run)
        book = TableBook(spark, config, self._spec, self._sink, self._warnings.add)
        self._writer = BatchWriter(
            self._sink,
            self._ledger,
            book,
            self._spec,
            config.name,
            self._run,
            config.folders.paths,
            in_turn=config.commit_max_transactions is not None,
        )
        self._tally = _Tally()

    def collections(self) -> list[str]:
        """Return the collections whose topics exist now."""
        prefix = f"{self._config.source.topic_prefix}."
        return [topic.removeprefix(prefix) for topic in self._source.topics()]

    def go(
        self, *, continuous: bool, min_sync_interval_seconds: float, max_batches: int | None
    ) -> RunSummary:
        """Run until nothing more is available (or for ever, or ``max_batches``)."""
        began = time.monotonic()
        self._patience = Patience(
            self._config.transaction_timeout_seconds,
            static=self._config.source.kind == "recorded",
            continuous=continuous,
        )
        self._reader = WindowReader(
            self._source,
            self._config.source.ends_topic,
            self._spec,
            counted(self._config),
            self._schemas,
            batch_events=self._config.batch_max_events,
            batch_transactions=self._config.commit_max_transactions,
            final=self._patience.static,
            snapshot_again=self._config.source.snapshot_again == "replace",
        )
        self._adopt()
        collections = self.collections()
        state = read_lake(self._ledger, self._sink, collections)
        for text in without_topic(self._config, {*collections, *state.head.tables}):
            self._warnings.add(text)
        refuse_another_order(state.head, self._spec)
        while True:
            window_began = time.monotonic()
            left = None if max_batches is None else max_batches - self._tally.batches
            if left is not None and left <= 0:
                break
            try:
                state, progress = self._window(state, left)
            except Exception as error:
                # Retention may remove records between the plan and the job that reads them.
                loss = data_loss_error(error, self._source)
                if loss is None:
                    raise
                raise loss from error
            if progress:
                continue
            if not continuous:
                break
            pause = min_sync_interval_seconds - (time.monotonic() - window_began)
            time.sleep(max(pause, IDLE_SECONDS if min_sync_interval_seconds == 0 else 0.05))
        return self._summary(state, time.monotonic() - began)

    def _adopt(self) -> None:
        """Adopt the tables that are to be adopted; most pipelines have none."""
        config = self._config
        if adopted_collections(config):
            Adoption(
                config,
                self._source,
                opened_adoption(self._spark, config),
                self._ledger,
                self._spec,
                self._schemas,
                counted(config),
                self._run,
            ).adopt(self.collections())

    def _window(self, state: LakeState, left: int | None) -> tuple[LakeState, bool]:
        """Apply one window; tells whether there is more to look at at once."""
        window = self._reader.read(state.head.frontier, state.through)
        if window is None:
            refuse_if_lost(state.through)
            return state, False
        self._tally.pending = window.waiting
        refuse_unknown_ends(window, self._ledger, state.adopted_at)
        batches = _batches(window)
        if not batches:
            return self._without_batches(window, state)
        failpoint("2.planned")
        # Neither needs the other: the lake is taken over, the first batch is prepared.
        with in_background(
            partial(prepare, window, batches[0], state, self._writer.book)
        ) as prepared:
            if not state.ours:
                taken = take_over(self._ledger, self._sink, state, self._run)
                if not same_progress(state, taken):
                    return taken, True
                state = taken
            first = prepared()
        if left is None or left > len(batches):
            self._reader.begin_next(window, batches, state.head.frontier)
        return self._writer.write(window, batches[:left], state, first, self._published), True

    def _published(self, summary: BatchSummary) -> None:
        self._tally.add(summary)
        if self._on_batch is not None:
            self._on_batch(summary)

    def _without_batches(self, window: Window, state: LakeState) -> tuple[LakeState, bool]:
        if not window.reach.whole:
            self._reader.enlarge(window)
            return state, True
        if window.seam is not None:
            return self._open_epoch(window.seam, state), True
        refuse_if_stuck(window, self._patience, self._config.uncounted_collections)
        if not window.waiting:
            refuse_if_lost(state.through)
        return state, False

    def _open_epoch(self, seam: Seam, state: LakeState) -> LakeState:
        """Go on behind a seam; what lies before it and is not applied, the snapshot holds."""
        if not state.ours:
            taken = take_over(self._ledger, self._sink, state, self._run)
            if not same_progress(state, taken):
                return taken
            state = taken
        refuse_if_lost(state.through)
        publication = opening(state.head, seam, self._run)
        self._ledger.publish_epoch(publication)
        self._published(BatchSummary(publication.batch, 0, 0, 0.0, {}))
        return state.published(publication, {})

    def _summary(self, state: LakeState, seconds: float) -> RunSummary:
        frontier = state.head.frontier
        ends_topic = self._config.source.ends_topic
        place = "initial snapshot" if frontier.streaming else "nothing yet"
        if frontier.end_offset >= 0:
            end = f"END at offset {frontier.end_offset} of {ends_topic}"
            place = end if ends_topic else "each event on its own"
        return RunSummary(
            self._tally.batches,
            self._tally.transactions,
            self._tally.events,
            dict(sorted(self._tally.rows.items())),
            seconds,
            f"batch {state.head.batch}, {place}",
            self._tally.pending,
            self._warnings.all(),
        )


def _batches(window: Window) -> list[int]:
    snapshot = [SNAPSHOT_BATCH] if window.snapshot else []
    return snapshot + [index + 1 for index in range(len(window.cuts))]


def run_session(spark: SparkSession) -> SparkSession:
    """Return a session whose queries are planned once where little can be won by planning again.

    Adaptive execution makes a job of every stage and plans after each; what it finds out is how
    many of hundreds of shuffle partitions to join. A session with a handful has nothing to join,
    and a small MERGE takes 15 % less without it (1.4 s against 1.6 s, measured).

    Its zone is UTC whatever the user's is: the text of a moment is part of Hudi's record keys and
    of the hash of a row without a key, and two moments have one text when clocks go back.
    """
    remember_names(spark)
    partitions = spark.conf.get("spark.sql.shuffle.partitions") or ""
    handful = partitions.isdigit() and int(partitions) <= _HANDFUL
    adaptive = {"spark.sql.adaptive.enabled": "false"} if handful else {}
    return own_session(spark, {"spark.sql.session.timeZone": "UTC", **adaptive})


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

    Args:
        spark: Session with Delta (``lakeingest.session.session``).
        config: The pipeline.
        source: Where records come from; the configured one when null.
        continuous: Go on as new records arrive, until the process is stopped.
        min_sync_interval_seconds: Least time between the starts of two readings, continuous.
        max_batches: Stop after so many publications.
        on_batch: Called after each publication.

    Raises:
        LakeingestError: See ``errors``; what was published before it stays published.
    """
    own = run_session(spark)
    with (
        storage(*storage_of(config)),
        closing(source or open_source(own, config.source)) as opened,
        closing(opened_schemas(own, config.source)) as schemas,
    ):
        run = PipelineRun(own, config, opened, schemas, on_batch)
        return run.go(
            continuous=continuous,
            min_sync_interval_seconds=min_sync_interval_seconds,
            max_batches=max_batches,
        )
