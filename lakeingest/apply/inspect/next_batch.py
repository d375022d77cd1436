"""Read and prepare the next batch of a pipeline without writing it: for commands that only look.

What a run would stop at before it writes, these commands stop at, by the same functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property

from pyspark.sql import SparkSession

from lakeingest.apply.as_published import refuse_unsuited
from lakeingest.apply.batch.changeset import changeset
from lakeingest.apply.batch.prepare import PreparedBatch, prepare
from lakeingest.apply.factory import storage_of
from lakeingest.apply.failure import classify_failure
from lakeingest.apply.guards.connector import refuse_other_connector
from lakeingest.apply.guards.order import refuse_another_order
from lakeingest.apply.inspect.pipeline_parts import PipelineParts
from lakeingest.apply.lake import LakeState, with_tables, with_unpublished
from lakeingest.apply.spark_errors import spark_errors_of
from lakeingest.apply.stall_detection import (
    is_superseded,
    patience_of,
    refuse_if_lost,
    refuse_stall,
)
from lakeingest.apply.table.catalog import TableBook
from lakeingest.apply.table.new_tables import FirstSeen
from lakeingest.apply.window.batch_size import BatchSize, bounds_of
from lakeingest.apply.window.prefetch import WindowReader
from lakeingest.apply.window.progress import fills_new_table
from lakeingest.apply.window.window import Window

_TRIED_BATCHES = 3


@dataclass(frozen=True)
class NextBatch:
    """The next batch of a pipeline, as its next run would find it.

    Attributes:
        spark: Session of the command.
        parts: The pipeline.
        state: Its lake.
    """

    spark: SparkSession
    parts: PipelineParts
    state: LakeState

    def read(self, most_records: int | None = None) -> Window | None:
        """Read the first window; None: there is no new record.

        Args:
            most_records: Records to read at most, also if no transaction is complete in them; None:
                as many as a run.

        Raises:
            LakeingestError: A run would stop at what the window holds.
        """
        config, log, state = self.parts.config, self.parts.log, self.state
        size = BatchSize.of(config.batch_max_events, config.window_max_records)
        bounds = bounds_of(self.spark, config, size.events)
        records = size.window if most_records is None else min(most_records, size.window)
        reader = WindowReader(log, bounds, records, config.window_max_bytes)
        with self._failures():
            refuse_other_connector(state.head, log)
            refuse_another_order(state.head, log.spec)
            refuse_unsuited(config, state.head)
            declared = config.tables.keys() & state.head.tables.keys()
            lake = with_tables(state, self.parts.sink, declared)
            self._book.refuse_other_declarations(lake.tables)
            while True:
                window = reader.read(state.head.frontier, state.through)
                if window is None:
                    refuse_if_lost(state.through)
                    return None
                unfinished = not window.batches and window.is_unfinished(state.through)
                if not unfinished or most_records is not None:
                    fills = not unfinished and fills_new_table(window, state.head)
                    return window.redelivered() if fills and window.redelivered else window
                reader.enlarge(window, state.through)

    def refuse(self, window: Window) -> None:
        """Stop at what a run would stop at before it has written the first batches of a window.

        A lake's first batch is a snapshot, in which only some of the tables may have rows. Where
        the window ends within it, what is there of it is tried.

        Args:
            window: Result of ``read``.

        Raises:
            LakeingestError: There is such a thing.
        """
        config, sink = self.parts.config, self.parts.sink
        unfinished = window.is_unfinished(self.state.through)
        with self._failures():
            state = FirstSeen(config, sink).states(window, self.state)
            replaces = config.source.replaces_tables
            if is_superseded(window, self.parts.ledger, state, replaces=replaces):
                return
            tried = self._with_part_of_snapshot(window) if unfinished else window
            if tried.batches:
                if config.commit_mode == "per-transaction":
                    state = with_unpublished(state, sink)
                book, lake = self._book, state
                for index in tried.batches[:_TRIED_BATCHES]:
                    batch = prepare(tried, index, state, book)
                    self._decode(batch, lake if index == tried.batches[0] else None)
                    if not batch.foreseen:
                        break
                    state = batch.expected(state)
            elif window.cut_over is None and not unfinished:
                names, uncounted = config.source.names, config.uncounted_collections
                patience = patience_of(config, continuous=False)
                refuse_stall(window, patience, names, uncounted)

    def _with_part_of_snapshot(self, window: Window) -> Window:
        """Return a window whose initial snapshot goes on behind it as if it were complete."""
        loads = not self.state.head.frontier.streaming and window.contents.has_snapshot()
        if window.batches or not loads or window.recut is None:
            return window
        return window.recut(replace(window, snapshot=True), ())

    def _decode(self, batch: PreparedBatch, lake: LakeState | None) -> None:
        """Decode the values of a batch, and write them nowhere.

        Args:
            batch: The batch.
            lake: The lake below it; None: the batch before is not written. Tables that need its
                rows are left out then.
        """
        for part in batch.parts:
            if part.asks_lake and lake is None:
                continue
            collection = part.table.collection
            with spark_errors_of(collection):
                before = lake.tables.get(collection) if lake and part.asks_lake else None
                table = self.parts.sink.read(collection, before.version) if before else None
                payloads, _ = changeset(part, self.parts.log.spec, table, batch.latest)
                payloads.frame.write.format("noop").mode("overwrite").save()

    @cached_property
    def _book(self) -> TableBook:
        parts = self.parts
        return TableBook(self.spark, parts.config, parts.log.spec, parts.sink, _ignore)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            failure = classify_failure(error, self.parts.source, storage_of(self.parts.config))
            if failure is error:
                raise
            raise failure from error


def _ignore(_: str) -> None:
    """Take a warning, which the run itself will give."""
