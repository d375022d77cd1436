"""Make the publications of a batch: one, or one for each of its transactions.

A publication of a transaction gives each table the version of its newest commit up to that
transaction. Most of these are commits of the batch itself. After a crash some were made by the
killed run (``LakeState.unpublished``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lakeingest.apply.batch.prepare import PreparedBatch
from lakeingest.apply.lake import LakeState
from lakeingest.apply.next_publication import clock_ms
from lakeingest.apply.window.window import Window
from lakeingest.commit_note import CommitNote, token
from lakeingest.folders import LakeFolders
from lakeingest.ledger.publication import Frontier, Publication
from lakeingest.plan.batches import SNAPSHOT_BATCH
from lakeingest.plan.evolution import SourceSchema
from lakeingest.position.epochs import Epoch
from lakeingest.sink.contract import TableState


@dataclass(frozen=True)
class Written:
    """What a batch has written.

    Attributes:
        commits: The tables' commits by collection, oldest first.
        rows: Number of merge payloads by collection.
        jobs: Number of Spark jobs.
    """

    commits: Mapping[str, Sequence[TableState]]
    rows: Mapping[str, int]
    jobs: int

    @property
    def changed(self) -> dict[str, TableState]:
        """The state of each table that has a new commit."""
        return {name: states[-1] for name, states in self.commits.items() if states}


def notes(
    frontiers: Sequence[Frontier], batch: PreparedBatch, state: LakeState, of_run: CommitNote
) -> list[CommitNote]:
    """Return the notes of a batch's commits, one per publication, without what is of a table.

    Args:
        frontiers: The frontier after each publication (``frontiers_up_to``).
        batch: The batch.
        state: State of the lake before it.
        of_run: What the notes of a run have in common; the rest of it does not count.
    """
    is_snapshot = batch.index == SNAPSHOT_BATCH
    result: list[CommitNote] = []
    for number, frontier in enumerate(frontiers, state.head.batch + 1):
        note = replace(
            of_run,
            token=token(state.head.writer, number),
            batch=number,
            end_offset=-1 if is_snapshot else frontier.end_offset,
            end_position=frontier.end_position,
        )
        if batch.ends:
            end = batch.ends[len(result)]
            note = replace(note, transaction=end.transaction, committed_ms=end.committed_ms)
        result.append(note)
    return result


def publications(
    window: Window,
    batch: PreparedBatch,
    state: LakeState,
    written: Written,
    progress: Sequence[tuple[CommitNote, Frontier]],
    folders: LakeFolders,
) -> list[Publication]:
    """Return the publications of a batch that is written, oldest first; see the module.

    Args:
        window: The batch's window.
        batch: The batch.
        state: State of the lake before it.
        written: What it has written.
        progress: The note of each publication's commits (``notes``), and the frontier after it.
        folders: Folders of the tables.
    """
    head = state.head
    cut = window.cuts[batch.index - 1] if batch.index != SNAPSHOT_BATCH else None
    of_batch = cut.transactions if cut else 0, batch.rows
    counts = [(1, end.events) for end in batch.ends] or [of_batch]
    before = head.frontier
    result: list[Publication] = []
    # A killed run may have told the ledger nothing of its commits.
    changed = state.commits_up_to(progress[-1][0].end_offset, written.commits)
    for note, frontier in progress:
        is_first, is_last = not result, len(result) == len(progress) - 1
        tables = state.versions(state.commits_up_to(note.end_offset, written.commits))
        transactions, events = counts[len(result)]
        publication = Publication(
            batch=note.batch,
            token=note.token,
            writer=head.writer,
            run=note.run,
            tables=tables,
            paths=state.paths(tables, folders),
            transactions=transactions,
            events=events,
            jobs=written.jobs if is_last else 0,
            opened=_new_epochs(before, frontier),
            frontier=frontier,
            schemas=_new_schemas(state, changed) if is_first else {},
            notes=_notes(state, changed) if is_last else {},
            at_ms=clock_ms(),
            retired=head.retired,
            reloads={name: load for name, load in head.reloads.items() if name not in tables},
        )
        result.append(publication)
        before = frontier
    return result


def _new_schemas(state: LakeState, changed: Mapping[str, TableState]) -> dict[str, str]:
    """Return the DDL of each changed table whose source schema no publication has shown yet.

    A table that is ahead of the ledger may have changed in a batch that was never published.
    """
    schemas = {}
    for name, table in changed.items():
        if table.note.schema != _shown_schema(state, name):
            schema = SourceSchema.from_json(table.note.schema)
            if schema is not None:
                schemas[name] = schema.ddl()
    return schemas


def _notes(state: LakeState, changed: Mapping[str, TableState]) -> dict[str, str]:
    """Return the notes of the tables' commits; keep a schema if no publication has shown it."""
    result = {}
    for name, table in changed.items():
        unchanged = table.note.schema == _shown_schema(state, name)
        result[name] = replace(table.note, schema="" if unchanged else table.note.schema).to_json()
    return result


def _shown_schema(state: LakeState, name: str) -> str | None:
    """Return the source schema that publications have shown of a table; None: it is not certain."""
    table = state.tables.get(name)
    return None if table is None or state.is_ahead(name) else table.note.schema


def _new_epochs(before: Frontier, after: Frontier) -> tuple[Epoch, ...]:
    """Return the epochs that begin between two frontiers; the first epoch does not count."""
    newest_number = max((epoch.number for epoch in before.epochs), default=after.epoch)
    return tuple(epoch for epoch in after.epochs if epoch.number > newest_number)
