"""Take over the lake: what is there, who wrote last, and that nobody else writes from now on.

Reading what is there changes nothing, so a run that finds nothing new leaves no trace. The lake is
claimed before the first write: the ledger first (older drivers cannot publish any more), then every
table (older drivers cannot commit any more, either). Only then is the state final; if it moved in
between, the plan is made anew.

Where the driver before released the lake, no older driver writes and no published table is ahead.
Then a table is looked at when a window has records of it, and none is fenced: 95 idle tables of 100
cost nothing. After a kill every table is looked at and fenced. A table that was never published is
looked at and fenced when its records are met, after a kill and after a release: whoever made it
left no trace elsewhere, and its name is known from its records alone (a topic's name may differ).

A table *ahead* of the ledger is a crash between a table's commit and the publication, by one batch
or by two (``batch/writer.py``). Its rows cannot be taken back, so the next batch must reach exactly
as far as the farthest table does: a publication in between would show that table ahead of the
others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from lakeingest.apply.failpoints import failpoint
from lakeingest.apply.parallel import side_by_side
from lakeingest.errors import ConfigError, FencedError
from lakeingest.folders import LakeFolders, folder_name
from lakeingest.frame_schemas import LEDGER_FOLDER
from lakeingest.ledger.delta import DeltaLedger
from lakeingest.ledger.publication import Publication
from lakeingest.sink.contract import Sink, TableState


@dataclass(frozen=True)
class LakeState:
    """The ledger's head and every table's state.

    Attributes:
        head: Newest publication.
        tables: Collection to state; collections without a table are not in it.
        ours: Whether this run has claimed the lake.
    """

    head: Publication
    tables: Mapping[str, TableState]
    ours: bool = False

    @property
    def through(self) -> int | None:
        """END up to which the next batch must reach; null when no table is ahead."""
        ahead = [t.note.end_offset for name, t in self.tables.items() if self._is_ahead(name, t)]
        return max(ahead, default=None) if ahead and max(ahead) >= 0 else None

    def _is_ahead(self, name: str, table: TableState) -> bool:
        """Return whether a table holds more than what is published.

        Batches may have been published since a killed run made a table and named it nowhere.
        """
        unpublished = name not in self.head.tables
        further = table.note.end_offset > self.head.frontier.end_offset
        return table.note.batch > self.head.batch or (unpublished and further)

    @property
    def adopted_at(self) -> str:
        """Position up to which other writers' tables held everything; empty: none was adopted."""
        there = (state.note.adopted_at for state in self.tables.values())
        gone = (table.adopted_at for table in self.head.retired.values())
        return max((*there, *gone), default="")

    def versions(self, changed: Mapping[str, TableState]) -> dict[str, int]:
        """Return the version of each table that is published next: the changed ones' new one.

        A table that was adopted has rows before its first batch.
        """
        states = self.tables.items()
        adopted = {name: state.version for name, state in states if state.note.adopted_at}
        new = {name: state.version for name, state in changed.items()}
        return {**adopted, **self.head.tables, **new}

    def unchanged(self, publication: Publication, folders: LakeFolders) -> Publication:
        """Return a publication that changes no table, with every table in it.

        It may be a lake's first one: then those that were adopted are in none before it.
        """
        tables = self.versions({})
        return replace(publication, tables=tables, paths=folders.named(tables))

    def published(self, publication: Publication, changed: Mapping[str, TableState]) -> LakeState:
        """Return the state after a publication."""
        return replace(self, head=publication, tables={**self.tables, **changed})


def read_lake(ledger: DeltaLedger, sink: Sink, collections: Iterable[str]) -> LakeState:
    """Read the head, and the tables unless the driver before released them; writes nothing.

    Raises:
        ConfigError: Ledger or a table belong to somebody else, or a published table is gone or lies
            behind.
    """
    state = LakeState(ledger.head(), {})
    if not (state.head.released and state.head.batch):
        state = with_every_table(state, sink, collections)
    failpoint("1.recovered")
    return state


def with_every_table(state: LakeState, sink: Sink, collections: Iterable[str] = ()) -> LakeState:
    """Look at every published table, and at those of ``collections``.

    Raises:
        ConfigError: See ``read_lake``.
    """
    return with_tables(state, sink, {*collections, *state.head.tables})


def with_tables(state: LakeState, sink: Sink, names: Iterable[str]) -> LakeState:
    """Look at these tables where that was not done yet.

    Raises:
        ConfigError: See ``read_lake``.
        FencedError: A table that was never published belongs to a later run.
    """
    new = sorted({*names} - state.tables.keys())
    if state.head.writer == 0:
        side_by_side(sink.refuse_foreign_files, new)
    published = state.head.tables

    def looked(name: str) -> TableState | None:
        return sink.state(name, published.get(name))

    states = dict(zip(new, side_by_side(looked, new), strict=True))
    _refuse_missing(name for name in new if name in published and states[name] is None)
    found = {name: table for name, table in states.items() if table is not None}
    _refuse_behind(state.head, found)
    if state.ours:
        unpublished = {name: table for name, table in found.items() if name not in published}
        found |= _fenced(unpublished, sink, state.head)
    return replace(state, tables={**state.tables, **found})


def _refuse_missing(names: Iterable[str]) -> None:
    """Stop where a published table is not there: made anew, it would hold later changes alone."""
    missing = list(names)
    if missing:
        message = (
            f"These tables are published, but at their path is no table of the configured format: "
            f"{', '.join(missing)}. Put them back, or set lakeingest.target.format (or format and "
            "path of the table) as they were; to load them anew, choose another "
            f"lakeingest.target.path.{_as_it_was(missing)}"
        )
        raise ConfigError(message)


def _as_it_was(names: Iterable[str]) -> str:
    """Return what to do about folders that an earlier version named otherwise."""
    moved = [name for name in names if folder_name(name) != name]
    if not moved:
        return ""
    renamed = ", ".join(f"'{name}' to '{folder_name(name)}'" for name in moved)
    return (
        " An earlier version named a table's folder by the table as it is. If so, rename the "
        f"folder: {renamed}."
    )


def _refuse_behind(head: Publication, states: Mapping[str, TableState]) -> None:
    """Stop where a table does not reach to what is published of it: changes would be missing.

    A folder was put back from a copy, or Hudi's restore took commits away.
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


def take_over(ledger: DeltaLedger, sink: Sink, state: LakeState) -> LakeState:
    """Claim the lake for this run; the result may differ from ``state`` in more than the owner.

    Raises:
        FencedError: Another run claimed at the same moment.
    """
    head = ledger.claim(state.head)
    failpoint("2.claimed")
    # What was looked at before another driver published is not what is there now.
    known = dict(state.tables) if head.batch == state.head.batch or not head.released else {}
    if head.released:
        doubtful = {name: table for name, table in known.items() if name not in head.tables}
    else:
        for name in head.tables.keys() - known.keys():
            # Made and published by another driver since ``state`` was read, or not looked at.
            made = sink.state(name)
            if made is not None:
                known[name] = made
        doubtful = known
    tables = {**known, **_fenced(doubtful, sink, head)}
    failpoint("2.fenced")
    return LakeState(head, tables, ours=True)


def _fenced(
    tables: Mapping[str, TableState], sink: Sink, head: Publication
) -> dict[str, TableState]:
    """Shut older drivers out of these tables; returns the states that hold now."""

    def fenced(table: TableState) -> TableState:
        result = sink.fence(table, head.writer, head.run)
        failpoint("2.first-table-fenced")
        return result

    found = dict(zip(tables, side_by_side(fenced, list(tables.values())), strict=True))
    if any(table.note.run != head.run for table in found.values()):
        message = "Another run wrote to the tables while this one took over; run again."
        raise FencedError(message)
    return found


@contextmanager
def handed_over(ledger: DeltaLedger, settled: Callable[[], LakeState | None]) -> Iterator[None]:
    """Release the lake when the block ends, also by an error, if nothing of this run is under way.

    Args:
        ledger: Is released.
        settled: Gives the state if each table commit of this run is published in it; else None.
    """
    try:
        yield
    except BaseException:
        # Who comes next looks at every table then; the error is what matters.
        with suppress(Exception):
            _release(ledger, settled())
        raise
    _release(ledger, settled())


def _release(ledger: DeltaLedger, state: LakeState | None) -> None:
    if state is not None and state.ours and state.through is None:
        ledger.release(state.head)


def same_progress(one: LakeState, other: LakeState) -> bool:
    """Tell whether a plan made on ``one`` still holds on ``other``."""
    return one.head.batch == other.head.batch and one.through == other.through
