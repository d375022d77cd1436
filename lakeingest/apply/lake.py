"""Take over the lake: what is there, who wrote last, and that nobody else writes from now on.

Reading what is there changes nothing, so a run that finds nothing new leaves no trace. The lake is
claimed before the first write: the ledger first (older drivers cannot publish any more), then every
table (older drivers cannot commit any more, either). Only then is the state final; if it moved in
between, the plan is made anew.

A table *ahead* of the ledger is a crash between a table's commit and the publication, by one batch
or by two (``batch.py``). Its rows cannot be taken back, so the next batch must reach exactly as far
as the farthest table does: a publication in between would show that table ahead of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from lakeingest.apply.failpoints import failpoint
from lakeingest.apply.side_by_side import side_by_side
from lakeingest.errors import ConfigError, FencedError
from lakeingest.ledger.delta import DeltaLedger
from lakeingest.ledger.publication import Publication
from lakeingest.shape import LEDGER_FOLDER
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
        ahead = [s.note.end_offset for s in self.tables.values() if s.note.batch > self.head.batch]
        return max(ahead, default=None) if ahead and max(ahead) >= 0 else None

    @property
    def adopted_at(self) -> str:
        """Position up to which other writers' tables held everything; empty: none was adopted."""
        return max((state.note.adopted_at for state in self.tables.values()), default="")

    def versions(self, changed: Mapping[str, TableState]) -> dict[str, int]:
        """Return the version of each table that is published next: the changed ones' new one.

        A table that was adopted has rows before its first batch.
        """
        states = self.tables.items()
        adopted = {name: state.version for name, state in states if state.note.adopted_at}
        new = {name: state.version for name, state in changed.items()}
        return {**adopted, **self.head.tables, **new}

    def published(self, publication: Publication, changed: Mapping[str, TableState]) -> LakeState:
        """Return the state after a publication."""
        return replace(self, head=publication, tables={**self.tables, **changed})


def read_lake(ledger: DeltaLedger, sink: Sink, collections: Iterable[str]) -> LakeState:
    """Read head and tables; writes nothing.

    Raises:
        ConfigError: Ledger or a table belong to somebody else, or a published table is gone or lies
            behind.
    """
    head = ledger.head()
    names = sorted({*collections, *head.tables})
    if head.writer == 0:
        side_by_side(sink.refuse_foreign_files, names)
    states = dict(zip(names, side_by_side(sink.state, names), strict=True))
    _refuse_missing(name for name in sorted(head.tables) if states[name] is None)
    found = {name: state for name, state in states.items() if state is not None}
    _refuse_behind(head, found)
    failpoint("1.recovered")
    return LakeState(head, found)


def _refuse_missing(names: Iterable[str]) -> None:
    """Stop where a published table is not there: made anew, it would hold later changes alone."""
    missing = ", ".join(names)
    if missing:
        message = (
            f"These tables are published, but at their path is no table of the configured format: "
            f"{missing}. Put them back, or set lakeingest.target.format (or format and path "
            "of the table) as they were; to load them anew, choose another lakeingest.target.path."
        )
        raise ConfigError(message)


def _refuse_behind(head: Publication, states: Mapping[str, TableState]) -> None:
    """Stop where a table does not reach to what is published of it: changes would be missing.

    A folder was put back from a copy, or Hudi's restore took commits away.
    """
    names = (name for name, version in head.tables.items() if states[name].version < version)
    behind = ", ".join(sorted(names))
    if behind:
        message = (
            f"These tables lie behind the newest publication, so changes that were published would "
            f"be missing from them: {behind}. Nothing was touched. Put tables and ledger "
            f"({LEDGER_FOLDER}) back as of one moment, or load the lake anew under another "
            "lakeingest.target.path."
        )
        raise ConfigError(message)


def take_over(ledger: DeltaLedger, sink: Sink, state: LakeState, run: str) -> LakeState:
    """Claim the lake for this run; the result may differ from ``state`` in more than the owner.

    Raises:
        FencedError: Another run claimed at the same moment.
    """
    head = ledger.claim(state.head)
    failpoint("2.claimed")

    def fenced(table: TableState) -> TableState:
        result = sink.fence(table, head.writer, run)
        failpoint("2.first-table-fenced")
        return result

    known = dict(state.tables)
    for name in head.tables.keys() - known.keys():
        # Made and published by another driver since ``state`` was read.
        made = sink.state(name)
        if made is not None:
            known[name] = made
    tables = dict(zip(known, side_by_side(fenced, list(known.values())), strict=True))
    failpoint("2.fenced")
    if any(table.note.run != run for table in tables.values()):
        message = "Another run wrote to the tables while this one took over; run again."
        raise FencedError(message)
    return LakeState(head, tables, ours=True)


def same_progress(one: LakeState, other: LakeState) -> bool:
    """Tell whether a plan made on ``one`` still holds on ``other``."""
    return one.head.batch == other.head.batch and one.through == other.through
