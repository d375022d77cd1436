"""Step 3 of the commit protocol: every table's part of a batch in one commit each, side by side.

Nothing of it is visible to readers of published snapshots before step 4 (``publish.py``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from lakeingest.apply.batch.changeset import asks_lake, changeset
from lakeingest.apply.batch.prepare import PreparedBatch, TablePart, prepare
from lakeingest.apply.batch.publish import Publisher
from lakeingest.apply.failpoints import failpoint
from lakeingest.apply.lake import LakeState
from lakeingest.apply.parallel import perhaps_in_background, side_by_side
from lakeingest.apply.spark_errors import explained
from lakeingest.apply.summary import BatchSummary
from lakeingest.apply.table.catalog import TableBook
from lakeingest.apply.window.next_frontier import frontier_after
from lakeingest.apply.window.progress import clock_ms
from lakeingest.apply.window.window import Window
from lakeingest.folders import LakeFolders
from lakeingest.ledger.delta import DeltaLedger
from lakeingest.ledger.publication import Frontier, Publication
from lakeingest.plan.evolution import SourceSchema
from lakeingest.plan.spec import PipelineSpec
from lakeingest.plan.window import SNAPSHOT_BATCH
from lakeingest.position.epochs import Epoch
from lakeingest.sink.contract import CommitNote, Sink, TableState, token


@dataclass(frozen=True)
class BatchWriter:
    """Applies the batches of a run.

    Attributes:
        sink: Where tables are.
        ledger: Where publications are.
        book: Columns and keys of the tables.
        spec: Pipeline settings.
        pipeline: Its name.
        run: Identifier of the run.
        folders: Where the tables lie.
        in_turn: Whether a batch is written only when the one before it is published: two would
            share a publication after a crash, which ``commit.max.transactions`` forbids.
    """

    sink: Sink
    ledger: DeltaLedger
    book: TableBook
    spec: PipelineSpec
    pipeline: str
    run: str
    folders: LakeFolders
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

        While one is being written the next one is prepared, and while one is being published the
        next one is written: each leaves cores idle when nothing else is done. Where a batch changes
        what a table looks like, the next one is prepared after it.

        A crash then finds tables two batches ahead of the ledger at most, and the next publication
        reaches to where they are (``lake.py``). Not so for an initial snapshot, which is a
        publication of its own, nor if ``in_turn``: then each publication is awaited.

        Args:
            window: Where the batches are from.
            indexes: Which of its batches; at least one.
            state: The lake.
            first: The first of them, prepared.
            published: Told of each publication.
        """
        batch = first
        with Publisher(self.ledger, window, published) as publisher:
            for following in [*indexes[1:], None]:
                began = time.monotonic()
                early = batch.expected(state) if batch.foreseen else None
                with perhaps_in_background(self._preparing(window, following, early)) as ahead:
                    publication, changed, rows = self._apply(window, batch, state)
                    state = state.published(publication, changed)
                    self._note_versions(batch, changed)
                    summary = _summary(publication, rows, time.monotonic() - began)
                    publisher.begin(batch.index, publication, summary)
                    if self.in_turn or batch.index == SNAPSHOT_BATCH:
                        publisher.wait()
                    if following is not None:
                        prepared = ahead or partial(prepare, window, following, state, self.book)
                        batch = prepared()
            publisher.wait()
        return state

    def _note_versions(self, batch: PreparedBatch, changed: Mapping[str, TableState]) -> None:
        for part in batch.parts:
            if part.foreseen:
                collection = part.table.collection
                self.book.unchanged(collection, changed[collection].version)

    def _preparing(
        self, window: Window, index: int | None, state: LakeState | None
    ) -> Callable[[], PreparedBatch] | None:
        """Return what prepares batch ``index`` on top of ``state``; null where one is missing."""
        if index is None or state is None:
            return None
        return partial(prepare, window, index, state, self.book)

    def _apply(
        self, window: Window, batch: PreparedBatch, state: LakeState
    ) -> tuple[Publication, dict[str, TableState], dict[str, int]]:
        """Commit every table's part; what is returned is not published yet."""
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
        results = side_by_side(commit, batch.parts)
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
            events=sum(stats.rows for stats in batch.batch_stats),
            opened=_opened(state.head.frontier, frontier),
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
        """Commit one table's part; returns its state and the number of its merge payloads."""
        collection = part.table.collection
        previous = state.tables.get(collection)
        asks = not part.undecoded and asks_lake(part.batch_stats, part.table)
        with explained(collection):
            payloads, count = changeset(
                part.changes,
                part.batch_stats,
                part.table,
                self.spec,
                part.floor,
                self.sink.read(collection, previous.version) if previous and asks else None,
                batch.latest if part.undecoded else None,
                previous.note.high if previous and previous.note.tombstones else "",
            )
            schema = part.table.source or (previous.note.schema if previous else "")
            note = replace(note, collection=collection, schema=schema)
            result = self.sink.apply(payloads, note, previous)
            failpoint("3.after-first-commit")
            return result, count


def _new_schemas(state: LakeState, changed: Mapping[str, TableState]) -> dict[str, str]:
    """Return the source's tables that no publication has shown like this.

    A table that is ahead of the ledger may have changed in a batch that was never published.
    """
    shown = {}
    for name, table in changed.items():
        known = state.tables.get(name)
        published = known is not None and known.note.batch <= state.head.batch
        if not published or (known is not None and known.note.schema != table.note.schema):
            schema = SourceSchema.from_json(table.note.schema)
            if schema is not None:
                shown[name] = schema.ddl()
    return shown


def _notes(state: LakeState, changed: Mapping[str, TableState]) -> dict[str, str]:
    """Return what the tables' commits say; a schema only where no publication has shown it."""
    notes = {}
    for name, table in changed.items():
        known = state.tables.get(name)
        published = known is not None and known.note.batch <= state.head.batch
        same = published and known is not None and known.note.schema == table.note.schema
        notes[name] = replace(table.note, schema="" if same else table.note.schema).to_json()
    return notes


def _opened(before: Frontier, after: Frontier) -> tuple[Epoch, ...]:
    """Return the epochs that begin between two frontiers; the first one opens nothing."""
    known = max((epoch.number for epoch in before.epochs), default=after.epoch)
    return tuple(epoch for epoch in after.epochs if epoch.number > known)


def _summary(publication: Publication, rows: Mapping[str, int], took: float) -> BatchSummary:
    return BatchSummary(
        publication.batch, publication.transactions, publication.events, took, dict(rows)
    )
