"""Step 3 of the commit protocol: commit each table's part of a batch, the tables in parallel.

Each part is one commit. Readers of published snapshots see nothing of it before step 4
(``publish.py``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from lakeingest.apply.batch.changeset import changeset
from lakeingest.apply.batch.prepare import PreparedBatch, prepare
from lakeingest.apply.batch.publish import Publisher
from lakeingest.apply.batch.table_part import TablePart
from lakeingest.apply.failpoints import failpoint
from lakeingest.apply.lake import LakeState
from lakeingest.apply.next_publication import clock_ms
from lakeingest.apply.parallel import in_parallel, perhaps_in_background
from lakeingest.apply.spark_errors import spark_errors_of
from lakeingest.apply.summary import BatchSummary
from lakeingest.apply.table.catalog import TableBook
from lakeingest.apply.window.next_frontier import frontier_after
from lakeingest.apply.window.window import Window
from lakeingest.commit_note import CommitNote, token
from lakeingest.engine.job_count import JobCounter
from lakeingest.folders import LakeFolders
from lakeingest.ledger.delta import DeltaLedger
from lakeingest.ledger.publication import Frontier, Publication
from lakeingest.plan.batches import SNAPSHOT_BATCH
from lakeingest.plan.evolution import SourceSchema
from lakeingest.plan.spec import PipelineSpec
from lakeingest.position.epochs import Epoch
from lakeingest.sink.contract import Sink, TableState


@dataclass(frozen=True)
class BatchWriter:
    """Applies the batches of a run.

    Attributes:
        sink: Writes the tables.
        ledger: Stores the publications.
        book: Columns and keys of the tables.
        spec: Pipeline settings.
        pipeline: Name of the pipeline.
        run: Identifier of the run.
        folders: Folders of the tables.
        jobs: Counts the jobs of each batch.
        in_turn: Whether a batch waits until the one before it is published. Without it two batches
            would share a publication after a crash, which ``commit.max.transactions`` forbids.
    """

    sink: Sink
    ledger: DeltaLedger
    book: TableBook
    spec: PipelineSpec
    pipeline: str
    run: str
    folders: LakeFolders
    jobs: JobCounter
    in_turn: bool = False

    def write(
        self,
        window: Window,
        indexes: Sequence[int],
        state: LakeState,
        first: PreparedBatch,
        published: Callable[[BatchSummary], None],
    ) -> LakeState:
        """Apply and publish batches of ``window`` one after another, on top of ``state``.

        The next batch is prepared while one is written, and written while one is published: each
        step alone leaves cores idle. After a batch that changes a table's columns in an unforeseen
        way, the next batch is prepared only when that batch is written.

        After a crash, tables are at most two batches ahead of the ledger. The next publication then
        includes everything that they hold (``lake.py``). Two cases wait for each publication: an
        initial snapshot, which is a publication of its own, and ``in_turn``.

        Args:
            window: The window that the batches are cut from.
            indexes: Indexes of the batches; at least one.
            state: State of the lake.
            first: The first of the batches, prepared.
            published: Called after each publication.
        """
        batch = first
        with Publisher(self.ledger, window, published) as publisher:
            for next_index in [*indexes[1:], None]:
                start = time.monotonic()
                next_state = batch.expected(state) if batch.foreseen else None
                with perhaps_in_background(
                    self._preparation(window, next_index, next_state)
                ) as preparation:
                    publication, changed, rows = self._apply(window, batch, state)
                    state = state.published(publication, changed)
                    self._note_versions(batch, changed)
                    summary = _summary(publication, rows, time.monotonic() - start)
                    publisher.begin(batch.index, publication, summary)
                    if self.in_turn or batch.index == SNAPSHOT_BATCH:
                        publisher.wait()
                    if next_index is not None:
                        prepare_next = preparation or partial(
                            prepare, window, next_index, state, self.book
                        )
                        batch = prepare_next()
            publisher.wait()
        return state

    def _note_versions(self, batch: PreparedBatch, changed: Mapping[str, TableState]) -> None:
        for part in batch.parts:
            if part.foreseen:
                collection = part.table.collection
                self.book.unchanged(collection, changed[collection].version)

    def _preparation(
        self, window: Window, index: int | None, state: LakeState | None
    ) -> Callable[[], PreparedBatch] | None:
        """Return a function that prepares batch ``index`` on ``state``; None if either is None."""
        if index is None or state is None:
            return None
        return partial(prepare, window, index, state, self.book)

    def _apply(
        self, window: Window, batch: PreparedBatch, state: LakeState
    ) -> tuple[Publication, dict[str, TableState], dict[str, int]]:
        """Commit every table's part; return the publication, which is not published yet."""
        frontier = frontier_after(window, batch.index, state.head.frontier)
        number = state.head.batch + 1
        note = CommitNote(
            pipeline=self.pipeline,
            collection="",
            run=self.run,
            token=token(state.head.writer, number),
            batch=number,
            end_offset=-1 if batch.index == SNAPSHOT_BATCH else frontier.end_offset,
            end_position=frontier.end_position,
            event=bool(self.spec.names.event),
        )
        failpoint("3.before-first-commit")
        commit = partial(self._commit, batch, note, state)
        results = in_parallel(commit, batch.parts)
        failpoint("3.after-last-commit")
        names = [part.table.collection for part in batch.parts]
        changed = {name: after for name, (after, _) in zip(names, results, strict=True)}
        rows = {name: count for name, (_, count) in zip(names, results, strict=True)}
        cut = window.cuts[batch.index - 1] if batch.index != SNAPSHOT_BATCH else None
        tables = state.versions(changed)
        publication = Publication(
            batch=number,
            token=note.token,
            writer=state.head.writer,
            run=self.run,
            tables=tables,
            paths=self.folders.named(tables),
            transactions=cut.transactions if cut else 0,
            events=batch.rows,
            jobs=self.jobs.since_last(),
            opened=_new_epochs(state.head.frontier, frontier),
            frontier=frontier,
            schemas=_new_schemas(state, changed),
            notes=_notes(state, changed),
            at_ms=clock_ms(),
            retired=state.head.retired,
        )
        return publication, changed, rows

    def _commit(
        self, batch: PreparedBatch, note: CommitNote, state: LakeState, part: TablePart
    ) -> tuple[TableState, int]:
        """Commit one table's part; return its state and the number of its merge payloads."""
        collection = part.table.collection
        previous = state.tables.get(collection)
        with spark_errors_of(collection):
            lake = None
            if previous and part.asks_lake:
                lake = self.sink.read(collection, previous.version)
            tombstones_to = previous.note.high if previous and previous.note.tombstones else ""
            payloads, count = changeset(part, self.spec, lake, batch.latest, tombstones_to)
            schema = part.table.source or (previous.note.schema if previous else "")
            note = replace(note, collection=collection, schema=schema)
            result = self.sink.apply(payloads, note, previous)
            failpoint("3.after-first-commit")
            return result, count


def _new_schemas(state: LakeState, changed: Mapping[str, TableState]) -> dict[str, str]:
    """Return the DDL of each changed table whose source schema no publication has shown yet.

    A table that is ahead of the ledger may have changed in a batch that was never published.
    """
    schemas = {}
    for name, table in changed.items():
        previous = state.tables.get(name)
        published = previous is not None and previous.note.batch <= state.head.batch
        if not published or (previous is not None and previous.note.schema != table.note.schema):
            schema = SourceSchema.from_json(table.note.schema)
            if schema is not None:
                schemas[name] = schema.ddl()
    return schemas


def _notes(state: LakeState, changed: Mapping[str, TableState]) -> dict[str, str]:
    """Return the notes of the tables' commits; keep a schema if no publication has shown it."""
    notes = {}
    for name, table in changed.items():
        previous = state.tables.get(name)
        published = previous is not None and previous.note.batch <= state.head.batch
        unchanged = published and previous is not None and previous.note.schema == table.note.schema
        notes[name] = replace(table.note, schema="" if unchanged else table.note.schema).to_json()
    return notes


def _new_epochs(before: Frontier, after: Frontier) -> tuple[Epoch, ...]:
    """Return the epochs that begin between two frontiers; the first epoch does not count."""
    newest_number = max((epoch.number for epoch in before.epochs), default=after.epoch)
    return tuple(epoch for epoch in after.epochs if epoch.number > newest_number)


def _summary(publication: Publication, rows: Mapping[str, int], seconds: float) -> BatchSummary:
    return BatchSummary(
        publication.batch,
        publication.transactions,
        publication.events,
        seconds,
        dict(rows),
        publication.jobs,
    )
