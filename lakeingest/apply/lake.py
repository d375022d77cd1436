"""Take over the lake: read its state and its last writer, and shut out every other writer.

Reading the state changes nothing, so a run that finds nothing new leaves no trace. The run claims
the lake before its first write. It claims the ledger first (older drivers can no longer publish),
then every table (older drivers can no longer commit). Only then is the state final. If it changed
in between, the run plans anew.

If the previous driver released the lake, no older driver writes and no published table is ahead.
Then the run reads a table's state when a window has records of it, and fences no table: 95 idle
tables of 100 cost nothing. After a kill the run reads and fences every table. A table that was
never published is read and fenced when its first records arrive, after a kill and after a release.
The run that made it left no trace elsewhere, and only its records give its name (a topic's name may
differ).

A table is *ahead* of the ledger if a run crashed between the table's commit and the publication. It
is ahead by one batch or by two (``batch/writer.py``). Its rows cannot be taken back, so the next
batch must end exactly where the farthest table ends: a publication in between would show that table
ahead of the others.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from lakeingest.apply.failpoints import failpoint
from lakeingest.apply.parallel import in_parallel
from lakeingest.errors import ConfigError, FencedError
from lakeingest.folders import LEDGER_FOLDER, LakeFolders, folder_name
from lakeingest.ledger.delta import DeltaLedger
from lakeingest.ledger.publication import Publication
from lakeingest.sink.contract import Sink, TableState
from lakeingest.transaction.cut import End


@dataclass(frozen=True)
class LakeState:
    """The ledger's head and every table's state.

    Attributes:
        head: Newest publication.
        tables: State by collection; a collection without a table is not in it.
        ours: Whether this run has claimed the lake.
        unpublished: Commits of the tables that are ahead of the ledger, oldest first, if each
            transaction is to be a version of its own.
    """

    head: Publication
    tables: Mapping[str, TableState]
    ours: bool = False
    unpublished: Mapping[str, Sequence[TableState]] = field(default_factory=dict)

    @property
    def applied(self) -> dict[str, int]:
        """Collection to the END up to which its table is ahead of the ledger."""
        return {
            name: table.note.end_offset
            for name, table in self.tables.items()
            if self.is_ahead(name)
        }

    def ends_to_divide(self, ends: Sequence[End]) -> tuple[End, ...]:
        """Return the transactions of the next batch, if each can have a publication of its own.

        A run that was killed may have written several of them in one commit.
        """
        behind = ends[0].offset if ends else 0
        for commits in self.unpublished.values():
            if any(c.note.end_offset >= behind and not c.note.transaction for c in commits):
                return ()
        return tuple(ends)

    @property
    def through(self) -> int | None:
        """END at which the next batch must end; None when no table is ahead."""
        ahead = [t.note.end_offset for name, t in self.tables.items() if self.is_ahead(name)]
        # A batch of redelivered rows has no END of its own; the next run reads its rows again.
        furthest = max(ahead, default=-1)
        return furthest if furthest > self.head.frontier.end_offset else None

    def is_ahead(self, name: str) -> bool:
        """Return whether a table holds more than what is published.

        A killed run may have left it so, and later publications, for instance of a table that is
        loaded anew, may have the numbers of its batches. So the END counts, too.
        """
        note, head = self.tables[name].note, self.head
        return note.batch > head.batch or note.end_offset > head.frontier.end_offset

    @property
    def adopted_at(self) -> str:
        """Position up to which the adopted tables hold everything; empty: none was adopted."""
        positions = (state.note.adopted_at for state in self.tables.values())
        retired_positions = (table.adopted_at for table in self.head.retired.values())
        return max((*positions, *retired_positions), default="")

    def commits_up_to(
        self, end: int, written: Mapping[str, Sequence[TableState]]
    ) -> dict[str, TableState]:
        """Return each table's newest commit up to a transaction, among those not published yet.

        Args:
            end: Offset of the transaction's END.
            written: Commits of the batch that holds the transaction, oldest first, by collection.
        """
        newest = {}
        for commits in (self.unpublished, written):
            for name, states in commits.items():
                number = bisect_right(states, end, key=lambda state: state.note.end_offset)
                if number:
                    newest[name] = states[number - 1]
        return newest

    def versions(self, changed: Mapping[str, TableState]) -> dict[str, int]:
        """Return the version of each table for the next publication.

        That of a changed table is its new one. An adopted table has rows, and so a version, before
        its first batch.
        """
        states = self.tables.items()
        adopted_versions = {name: state.version for name, state in states if state.note.adopted_at}
        new_versions = {name: state.version for name, state in changed.items()}
        return {**adopted_versions, **self.head.tables, **new_versions}

    def unchanged(self, publication: Publication, folders: LakeFolders) -> Publication:
        """Return a publication that changes no table, with the version of every table in it.

        It may be the lake's first publication. Then no earlier publication has the adopted tables.
        """
        tables = self.versions({})
        return replace(publication, tables=tables, paths=self.paths(tables, folders))

    def paths(self, tables: Iterable[str], folders: LakeFolders) -> dict[str, str]:
        """Return the folders that the next publication stores (``Publication.paths``)."""
        shown = {*tables}
        unshown = {name: name for name in self.head.taken_up - shown}
        return {**unshown, **folders.named({*shown, *self.head.paths})}

    def published(self, publication: Publication, changed: Mapping[str, TableState]) -> LakeState:
        """Return the state after a publication."""
        reached = publication.frontier.end_offset
        unpublished = {
            name: [state for state in commits if state.note.end_offset > reached]
            for name, commits in self.unpublished.items()
        }
        for name, state in changed.items():
            # A table that was ahead got further rows, for which its place has not come.
            if state.note.end_offset > reached:
                unpublished[name] = [*unpublished.get(name, ()), state]
        tables = {**self.tables, **changed}
        return replace(self, head=publication, tables=tables, unpublished=unpublished)


def read_lake(
    ledger: DeltaLedger, sink: Sink, collections: Iterable[str], folders: LakeFolders
) -> LakeState:
    """Read the head and, unless the previous driver released the lake, the tables; write nothing.

    A table whose folder is another one than the published is read in any case: the next publication
    names its folder, also of an idle table. So is a table that was taken up again and is not shown
    yet: without it, its rows would begin in the middle.

    Raises:
        ConfigError: The ledger or a table belongs to another pipeline; a table of the lake is
            missing, or older than its publication; or an adoption was begun and given up.
    """
    state = LakeState(ledger.head(), {})
    if not (state.head.released and state.head.batch):
        state = with_every_table(state, sink, collections)
    paths, published = folders.named(state.head.tables), state.head.paths
    moved = (name for name in state.head.tables if paths.get(name) != published.get(name))
    state = with_tables(state, sink, {*moved, *state.head.taken_up})
    _refuse_given_up_adoption(state)
    failpoint("1.recovered")
    return state


def with_every_table(state: LakeState, sink: Sink, collections: Iterable[str] = ()) -> LakeState:
    """Read the state of every published table, and of the tables of ``collections``.

    Raises:
        ConfigError: See ``read_lake``.
    """
    return with_tables(state, sink, {*collections, *state.head.tables})


def with_tables(state: LakeState, sink: Sink, names: Iterable[str]) -> LakeState:
    """Read the states of these tables that are not in ``state`` yet.

    Raises:
        ConfigError: See ``read_lake``.
        FencedError: A later run wrote a table that was never published.
    """
    new = sorted({*names} - state.tables.keys())
    if state.head.writer == 0:
        in_parallel(sink.refuse_foreign_files, new)
    published = state.head.tables

    def read_state(name: str) -> TableState | None:
        return sink.state(name, published.get(name))

    states = dict(zip(new, in_parallel(read_state, new), strict=True))
    must_exist = {*published, *state.head.taken_up}
    _refuse_missing(name for name in new if name in must_exist and states[name] is None)
    table_states = {name: table for name, table in states.items() if table is not None}
    _refuse_behind(state.head, table_states)
    if state.ours:
        unpublished = {name: table for name, table in table_states.items() if name not in published}
        table_states |= _fence_tables(unpublished, sink, state.head)
    return replace(state, tables={**state.tables, **table_states})


def _refuse_missing(names: Iterable[str]) -> None:
    """Stop where a published table is missing: a new one would hold later changes alone."""
    missing = list(names)
    if missing:
        message = (
            "These tables are the lake's, but at their path is no table of the configured format: "
            f"{', '.join(missing)}. Put them back, or set lakeingest.target.format (or format and "
            "path of the table) as they were, or load the tables anew (lakeingest reload CONFIG "
            f"{' '.join(missing)}).{_rename_hint(missing)}"
        )
        raise ConfigError(message)


def _refuse_given_up_adoption(state: LakeState) -> None:
    """Stop where an adoption stored where its topics go on, and a table of them is not adopted.

    Made anew, such a table would hold later changes alone. Before the first batch only an adoption
    stores offsets.
    """
    topics = {} if state.head.batch else state.head.frontier.offsets
    adopted = [name for name, table in state.tables.items() if table.note.adopted_at]
    if len(adopted) < len(topics):
        message = (
            f"An adoption of the tables of {', '.join(sorted(topics))} was begun in this lake, and "
            f"of these only {', '.join(adopted) or 'none'} is adopted. Put the tables back as they "
            "were and set lakeingest.table.<collection>.adopt for each again, or load the lake "
            "anew (another lakeingest.target.path)."
        )
        raise ConfigError(message)


def _rename_hint(names: Iterable[str]) -> str:
    """Return how to rename folders that an earlier version named in another way."""
    old_names = [name for name in names if folder_name(name) != name]
    if not old_names:
        return ""
    renames = ", ".join(f"'{name}' to '{folder_name(name)}'" for name in old_names)
    return (
        " An earlier version named a table's folder by the table as it is. If so, rename the "
        f"folder: {renames}."
    )


def _refuse_behind(head: Publication, states: Mapping[str, TableState]) -> None:
    """Stop where a table is older than its published version: changes would be missing.

    Possible causes: a folder was restored from a copy, or Hudi's restore removed commits.
    """
    names = (name for name, table in states.items() if table.version < head.tables.get(name, 0))
    behind = ", ".join(sorted(names))
    if behind:
        message = (
            f"These tables lie behind the newest publication, so changes that were published would "
            f"be missing from them: {behind}. Nothing was touched. Put tables and ledger "
            f"({LEDGER_FOLDER}) back as of one moment, or load the lake anew under another "
            "lakeingest.target.path."
        )
        raise ConfigError(message)


def with_unpublished(state: LakeState, sink: Sink) -> LakeState:
    """Read the commits of the tables that are ahead of the ledger.

    An older driver may add some until it is fenced; ``same_progress`` then says so.
    """
    commits = {name: sink.commits(name, state.head.tables.get(name, -1)) for name in state.applied}
    return replace(state, unpublished=commits)


def take_over(ledger: DeltaLedger, sink: Sink, state: LakeState) -> LakeState:
    """Claim the lake for this run; the result may differ from ``state`` in more than the owner.

    Raises:
        FencedError: Another run claimed the lake at the same moment.
    """
    head = ledger.claim(state.head)
    failpoint("2.claimed")
    # If another driver published since ``state`` was read, its table states are outdated.
    table_states = dict(state.tables) if head.batch == state.head.batch or not head.released else {}
    if head.released:
        to_fence = {name: table for name, table in table_states.items() if name not in head.tables}
    else:
        for name in head.tables.keys() - table_states.keys():
            # Another driver made and published it since ``state`` was read, or it was not read.
            table = sink.state(name)
            if table is not None:
                table_states[name] = table
        to_fence = table_states
    tables = {**table_states, **_fence_tables(to_fence, sink, head)}
    failpoint("2.fenced")
    return replace(state, head=head, tables=tables, ours=True)


def refuse_other_owner(head: Publication, run: str) -> None:
    """Stop a run that had claimed the lake where the newest entry is not its own any more.

    Raises:
        FencedError: Another driver has claimed the lake from it.
    """
    if head.run != run:
        message = (
            "Another run of this pipeline took over the lake while this one tried again; it "
            "stopped and published nothing more. Nothing is lost: the other run goes on from the "
            "last publication."
        )
        raise FencedError(message)


def _fence_tables(
    tables: Mapping[str, TableState], sink: Sink, head: Publication
) -> dict[str, TableState]:
    """Fence these tables against older drivers; return their states after that."""

    def fence(table: TableState) -> TableState:
        result = sink.fence(table, head.writer, head.run)
        failpoint("2.first-table-fenced")
        return result

    states = dict(zip(tables, in_parallel(fence, list(tables.values())), strict=True))
    if any(table.note.run != head.run for table in states.values()):
        message = "Another run wrote to the tables while this one took over; run again."
        raise FencedError(message)
    return states


@contextmanager
def release_on_exit(
    ledger: DeltaLedger, published_state: Callable[[], LakeState | None]
) -> Iterator[None]:
    """Release the lake when the block ends, also by an error, if nothing of this run is under way.

    Args:
        ledger: Ledger to release.
        published_state: Returns the state if it has every table commit of this run as published;
            else None.
    """
    try:
        yield
    except BaseException:
        # If the release fails, the next run reads every table. Report the block's own error.
        with suppress(Exception):
            _release(ledger, published_state())
        raise
    _release(ledger, published_state())


def _release(ledger: DeltaLedger, state: LakeState | None) -> None:
    if state is not None and state.ours and state.through is None:
        ledger.release(state.head)


def same_progress(one: LakeState, other: LakeState) -> bool:
    """Return whether a plan made on ``one`` still holds on ``other``."""
    return one.head.batch == other.head.batch and one.applied == other.applied
