"""Step 3 of the commit protocol: commit each table's part of a batch, the tables in parallel.

Each part is one commit, or one per source transaction. Readers of published snapshots see nothing
of it before step 4 (``publish.py``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from lakeingest.apply.batch.changeset import changeset
from lakeingest.apply.batch.prepare import PreparedBatch, prepare
from lakeingest.apply.batch.publications import Written, notes, publications
from lakeingest.apply.batch.publish import Publisher
from lakeingest.apply.batch.table_part import TablePart
from lakeingest.apply.failpoints import VERSIONS_FAILPOINT, failpoint
from lakeingest.apply.lake import LakeState
from lakeingest.apply.parallel import in_parallel, perhaps_in_background
from lakeingest.apply.spark_errors import spark_errors_of
from lakeingest.apply.summary import BatchSummary
from lakeingest.apply.table.catalog import TableBook
from lakeingest.apply.window.next_frontier import frontiers_up_to
from lakeingest.apply.window.window import Window
from lakeingest.commit_note import CommitNote
from lakeingest.engine.job_count import JobCounter
from lakeingest.folders import LakeFolders
from lakeingest.ledger.delta import DeltaLedger
from lakeingest.ledger.publication import Publication
from lakeingest.plan.batches import SNAPSHOT_BATCH
from lakeingest.plan.spec import PipelineSpec
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
            of several transactions would share a publication after a crash, which
            ``commit.max.transactions`` forbids.
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
        limit: int | None = None,
    ) -> LakeState:
        """Apply and publish batches of ``window`` one after another, on top of ``state``.

        The next batch is prepared while one is written, and written while one is published: each
        step alone leaves cores idle. After a batch that changes a table's columns in an unforeseen
        way, the next batch is prepared only when that batch is written. A batch whose transactions
        are to be versions of their own, which some table cannot have at once, is cut into smaller
        ones: a transaction that needs an ordinary commit to a table is then a batch of its own.

        After a crash, tables are at most two batches ahead of the ledger. The next publication then
        includes everything that they hold (``lake.py``). Two cases wait for each publication: an
        initial snapshot, which is a publication of its own, and ``in_turn``.

        Args:
            window: The window that the batches are cut from.
            indexes: Indexes of the batches; at least one.
            state: State of the lake.
            first: The first of the batches, prepared.
            published: Called after each publication.
            limit: Number of publications after which it stops; a batch may hold several.
        """
        batch, waiting, made = first, list(indexes[1:]), 0
        with Publisher(self.ledger, published) as publisher:
            while True:
                while batch.must_be_cut:
                    parts = window.with_parts(batch.index, batch.cut_out_at)
                    more = len(parts.cuts) - len(window.cuts)
                    first_new, later = batch.index + 1, (index + more for index in waiting)
                    waiting = [*range(first_new, first_new + more), *later]
                    window = parts
                    batch = prepare(window, batch.index, state, self.book)
                made += max(1, len(batch.ends))
                is_last = not waiting or (limit is not None and made >= limit)
                next_index = None if is_last else waiting.pop(0)
                start = time.monotonic()
                next_state = batch.expected(state) if batch.foreseen else None
                with perhaps_in_background(
                    self._preparation(window, next_index, next_state)
                ) as preparation:
                    new, written = self._apply(window, batch, state)
                    state = state.published(new[-1], written.changed)
                    self._note_versions(batch, written.changed)
                    summary = _summary(new, written.rows, time.monotonic() - start)
                    publisher.begin(window, batch.index, new, summary)
                    if self.in_turn or batch.index == SNAPSHOT_BATCH:
                        publisher.wait()
                    if next_index is None:
                        break
                    prepare_next = preparation or partial(
                        prepare, window, next_index, state, self.book
                    )
                    batch = prepare_next()
            publisher.wait()
        return state

    def _note_versions(self, batch: PreparedBatch, changed: Mapping[str, TableState]) -> None:
        for part in batch.parts:
            collection = part.table.collection
            if part.foreseen and collection in changed:
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
    ) -> tuple[list[Publication], Written]:
        """Commit every table's part; return the publications, which are not published yet."""
        of_run = CommitNote(
            pipeline=self.pipeline,
            collection="",
            run=self.run,
            token=0,
            batch=0,
            end_offset=-1,
            end_position="",
            event=bool(self.spec.names.event),
        )
        frontiers = frontiers_up_to(window, batch.index, batch.ends, state.head.frontier)
        notes_of_batch = notes(frontiers, batch, state, of_run)
        failpoint("3.before-first-commit")
        commit = partial(self._commit, batch, notes_of_batch, state)
        results = in_parallel(commit, batch.parts)
        failpoint("3.after-last-commit")
        names = [part.table.collection for part in batch.parts]
        written = Written(
            commits={name: commits for name, (commits, _) in zip(names, results, strict=True)},
            rows={name: count for name, (_, count) in zip(names, results, strict=True)},
            jobs=self.jobs.since_last(),
        )
        progress = list(zip(notes_of_batch, frontiers, strict=True))
        return publications(window, batch, state, written, progress, self.folders), written

    def _commit(
        self,
        batch: PreparedBatch,
        notes_of_batch: Sequence[CommitNote],
        state: LakeState,
        part: TablePart,
    ) -> tuple[Sequence[TableState], int]:
        """Commit one table's part; return its commits and the number of its merge payloads."""
        collection = part.table.collection
        previous = state.tables.get(collection)
        with spark_errors_of(collection):
            lake = None
            if previous and part.asks_lake:
                lake = self.sink.read(collection, previous.version)
            tombstones_to = previous.note.high if previous and previous.note.tombstones else ""
            payloads, count = changeset(part, self.spec, lake, batch.latest, tombstones_to)
            schema = part.table.source or (previous.note.schema if previous else "")
            own_notes = [
                replace(note, collection=collection, schema=schema) for note in notes_of_batch
            ]
            if batch.ends and part.cut_out_at is None and previous is not None:
                commits = self.sink.apply_each(
                    payloads, own_notes, previous, lambda _: failpoint(VERSIONS_FAILPOINT)
                )
            else:
                note = own_notes[0]
                if previous is not None and note.transaction:
                    note = note.not_before(previous.note)
                commits = [self.sink.apply(payloads, note, previous)]
            failpoint("3.after-first-commit")
            return commits, count


def _summary(new: Sequence[Publication], rows: Mapping[str, int], seconds: float) -> BatchSummary:
    return BatchSummary(
        new[-1].batch,
        sum(publication.transactions for publication in new),
        sum(publication.events for publication in new),
        seconds,
        dict(rows),
        new[-1].jobs,
        len(new),
    )
