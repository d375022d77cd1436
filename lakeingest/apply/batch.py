"""Apply one batch: every table's part in one commit each, side by side; then publish.

Step 3 of the commit protocol is "apply", step 4 "publish" (DESIGN §8). Nothing is visible to
readers of published snapshots before step 4, and step 4 is one append.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import functions as F

from lakeingest.apply.changeset import changeset
from lakeingest.apply.failpoints import failpoint
from lakeingest.apply.lake import LakeState
from lakeingest.apply.share import Share, first_pending
from lakeingest.apply.side_by_side import side_by_side
from lakeingest.apply.spark_errors import explained
from lakeingest.apply.summary import BatchSummary
from lakeingest.apply.tables import TableBook
from lakeingest.apply.window import Window
from lakeingest.ledger.delta import DeltaLedger
from lakeingest.ledger.publication import Frontier, Publication
from lakeingest.plan.spec import PipelineSpec
from lakeingest.plan.window import SNAPSHOT_BATCH, of_batch
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
    """

    sink: Sink
    ledger: DeltaLedger
    book: TableBook
    spec: PipelineSpec
    pipeline: str
    run: str

    def write(self, window: Window, index: int, state: LakeState) -> tuple[LakeState, BatchSummary]:
        """Apply and publish batch ``index`` of ``window`` on top of ``state``."""
        began = time.monotonic()
        frontier = self._frontier(window, index, state)
        number = state.head.batch + 1
        mine = [share for share in window.shares if share.batch == index]
        by_table: dict[str, list[Share]] = {}
        for share in mine:
            by_table.setdefault(share.collection, []).append(share)
        # A truncate of a table that has no rows yet, here or in the lake: nothing to sweep away.
        by_table = {
            name: found
            for name, found in by_table.items()
            if name in state.tables or any(share.rows for share in found)
        }
        note = CommitNote(
            pipeline=self.pipeline,
            collection="",
            run=self.run,
            token=token(state.head.writer, number),
            batch=number,
            end_offset=frontier.end_offset,
            end_position=frontier.end_position,
        )
        failpoint("3.before-first-commit")
        changed, rows = self._apply(window, index, by_table, note, state)
        failpoint("3.after-last-commit")
        events = sum(share.rows for share in mine)
        cut = window.cuts[index - 1] if index != SNAPSHOT_BATCH else None
        publication = Publication(
            batch=number,
            token=note.token,
            writer=state.head.writer,
            run=self.run,
            tables={**state.head.tables, **{name: s.version for name, s in changed.items()}},
            transactions=cut.transactions if cut else 0,
            events=events,
            frontier=frontier,
        )
        failpoint("4.before-publication")
        self._publish(window, index, publication)
        failpoint("4.after-publication")
        took = time.monotonic() - began
        summary = BatchSummary(number, publication.transactions, events, took, rows)
        return state.published(publication, changed), summary

    def _apply(
        self,
        window: Window,
        index: int,
        by_table: Mapping[str, Sequence[Share]],
        note: CommitNote,
        state: LakeState,
    ) -> tuple[dict[str, TableState], dict[str, int]]:
        # Largest first: with few workers the long ones should not start last.
        order = sorted(by_table, key=lambda name: -sum(share.rows for share in by_table[name]))

        def one(collection: str) -> tuple[TableState, int]:
            with explained(collection):
                return self._apply_table(
                    window, index, collection, by_table[collection], note, state
                )

        results = dict(zip(order, side_by_side(one, order), strict=True))
        changed = {name: result for name, (result, _) in results.items()}
        return changed, {name: count for name, (_, count) in results.items()}

    def _apply_table(
        self,
        window: Window,
        index: int,
        collection: str,
        shares: Sequence[Share],
        note: CommitNote,
        state: LakeState,
    ) -> tuple[TableState, int]:
        previous = state.tables.get(collection)
        topics = sorted({share.where.topic for share in shares})
        table_rows = window.changes.where(
            F.col("topic").isin(*topics) & (F.col("collection") == collection)
        )
        changes = of_batch(table_rows, window.cuts, index, window.frontier_position)
        table = self.book.spec(collection, shares, changes, previous)
        floor = max([share.floor for share in shares] + ([previous.note.floor] if previous else []))
        lake = self.sink.read(collection, previous.version) if previous else None
        payloads, count = changeset(changes, shares, table, self.spec, floor, lake)
        result = self.sink.apply(payloads, replace(note, collection=collection), previous)
        failpoint("3.after-first-commit")
        return result, count

    def _frontier(self, window: Window, index: int, state: LakeState) -> Frontier:
        old = state.head.frontier
        lowest = first_pending(window.shares, index)
        offsets = {topic: dict(parts) for topic, parts in old.offsets.items()}
        for covered in window.reach.data:
            parts = offsets.setdefault(covered.topic, {})
            parts[covered.partition] = covered.end
        for where, offset in lowest.items():
            offsets[where.topic][where.partition] = offset
        if index == SNAPSHOT_BATCH:
            return replace(old, offsets=offsets, streaming=True)
        cut = window.cuts[index - 1]
        return replace(
            old,
            end_offset=cut.last_offset,
            end_position=max(cut.position, old.end_position),
            committed_ms=max(old.committed_ms, self._committed_ms(window, index)),
            offsets=offsets,
            streaming=True,
        )

    def _committed_ms(self, window: Window, index: int) -> int:
        return max((s.source_ms for s in window.shares if s.batch == index), default=0)

    def _publish(self, window: Window, index: int, publication: Publication) -> None:
        transactions = window.boundaries
        if index == SNAPSHOT_BATCH:
            transactions = transactions.limit(0)
        else:
            cut = window.cuts[index - 1]
            transactions = transactions.where(
                F.col("end_offset").between(cut.first_offset, cut.last_offset)
            )
        self.ledger.publish(publication, transactions)
