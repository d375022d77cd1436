"""Publish another choice of tables outside a run: claimed and fenced like any other publication.

Another run may have been killed after it wrote tables and before it published them. The choice of
tables must not change what that run's batch is made of, unless the batch cannot be finished without
it: the types of a table may be what stops each run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from lakeingest.apply.failpoints import failpoint
from lakeingest.apply.lake import (
    LakeState,
    release_on_exit,
    same_progress,
    take_over,
    with_every_table,
)
from lakeingest.errors import TransientError
from lakeingest.ledger.delta import DeltaLedger
from lakeingest.ledger.publication import Publication
from lakeingest.sink.contract import Sink


@dataclass(frozen=True)
class TableChoice:
    """Which tables the next publication treats otherwise.

    Attributes:
        ledger: Ledger to claim.
        sink: The lake's tables.
        names: The tables. Their states are in the lake's state if they exist.
        interrupts: Whether it may come between a killed run and the one that finishes its batch.
        filtered: ``lakeingest.transaction.filtered.collections`` of the pipeline.
    """

    ledger: DeltaLedger
    sink: Sink
    names: Collection[str]
    interrupts: bool = False
    filtered: Collection[str] = ()

    def publish(
        self, state: LakeState, publication_after: Callable[[Publication], Publication]
    ) -> int:
        """Take the lake over and publish; return the number of the publication.

        Args:
            state: The head, and the states of the tables that exist.
            publication_after: Returns the publication that follows the newest one.

        Raises:
            TransientError: A run must finish first, or another one is at work.
        """
        ledger, sink = self.ledger, self.sink
        if not state.head.released:
            head = state.head
            other_tables = {name: at for name, at in head.tables.items() if name not in self.names}
            with_others = with_every_table(
                replace(state, head=replace(head, tables=other_tables)), sink
            )
            state = replace(with_others, head=head)
        published_state: LakeState | None = state
        with release_on_exit(ledger, lambda: published_state):
            self._refuse_interrupted(state)
            claimed = take_over(ledger, sink, state)
            published_state = claimed
            if not same_progress(self._without(state), self._without(claimed)):
                message = "Another run published meanwhile, so nothing was changed; run again."
                raise TransientError(message)
            self._refuse_interrupted(claimed)
            publication = publication_after(claimed.head)
            published_state = None
            failpoint("4.before-publication")
            ledger.publish_alone(publication)
            failpoint("4.after-publication")
            published_state = self._without(claimed.published(publication, {}))
        return publication.batch

    def _without(self, state: LakeState) -> LakeState:
        """Return the lake's state without the tables."""
        others = {name: at for name, at in state.tables.items() if name not in self.names}
        return replace(state, tables=others)

    def _refuse_interrupted(self, state: LakeState) -> None:
        """Stop where a killed run wrote tables and did not publish them.

        Raises:
            TransientError: A run did.
        """
        if self.interrupts or self._without(state).through is None:
            return
        names = ",".join(self.names)
        # A setting of the command line replaces the file's list.
        filtered = ",".join(dict.fromkeys((*self.filtered, *self.names)))
        message = (
            "A run was interrupted after it wrote tables and before it published them, and only a "
            "run can finish that. Run the pipeline (lakeingest run), then this again. If the run "
            f"waits for rows that went with the topic of '{names}', give it "
            f"--set lakeingest.transaction.filtered.collections={filtered} this once."
        )
        raise TransientError(message)
