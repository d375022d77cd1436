"""Maintain one table between two windows of a run, each table in its turn.

The number of the publication says whose turn it is, so the turns go on in the next run, and a run
that is killed leaves nothing behind that another one must know of. The run owns the lake: it
publishes the table's new version at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from lakeingest.apply.lake import LakeState, with_tables
from lakeingest.apply.maintenance.keeper import Keeper
from lakeingest.apply.next_publication import next_publication
from lakeingest.ledger.delta import DeltaLedger


def turn_of(before: int, batch: int, every: int, tables: Iterable[str]) -> str | None:
    """Return the table whose turn has come; None: no turn has come.

    Args:
        before: Number of the newest publication when the question was asked last.
        batch: Number of the newest publication now.
        every: Publications from one turn to the next.
        tables: The published tables.
    """
    names = sorted(tables)
    turn = batch // every
    if turn == before // every or not names:
        return None
    return names[turn % len(names)]


@dataclass(frozen=True)
class Turns:
    """The share of maintenance that a run does.

    Attributes:
        keeper: Maintains the tables.
        ledger: Stores the publications.
        run: Identifier of the run.
        every: Publications from one turn to the next.
    """

    keeper: Keeper
    ledger: DeltaLedger
    run: str
    every: int

    def after(self, before: LakeState, state: LakeState) -> LakeState:
        """Maintain the table whose turn has come with the newest publications, if one has.

        Args:
            before: The lake before the window.
            state: The lake after it; every commit of this run is published.

        Returns:
            The lake now.
        """
        head = state.head
        name = turn_of(before.head.batch, head.batch, self.every, head.tables)
        if name is None or not state.ours or state.through is not None:
            return state
        state = with_tables(state, self.keeper.sink, [name])
        (tidied,) = self.keeper.tidy([state.tables[name]])
        if tidied.version != head.tables[name]:
            tables = {**head.tables, name: tidied.version}
            publication = replace(next_publication(head, self.run), tables=tables)
            self.ledger.publish_alone(publication)
            state = state.published(publication, {name: tidied})
        self.keeper.expire([name])
        return state
