"""Protections that can be switched off, one by one: a checker that never fails proves nothing.

Each switch replaces the one place in which a protection is decided, in this process and for as
long as the caller says. The product has no such switch, and must not have one.

Rejected: copies of the product's functions without the protection. They would go on testing
yesterday's code; what is replaced here is as small as can be, and where the place moves the tests
of this folder fail, for then the run is protected after all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from typing import Any

import pytest
from pyspark.sql import functions as F

from lakeingest.apply.batch.prepare import PreparedBatch
from lakeingest.apply.batch.publications import Written
from lakeingest.apply.batch.publish import Publisher
from lakeingest.apply.batch.writer import BatchWriter
from lakeingest.apply.lake import LakeState
from lakeingest.apply.summary import BatchSummary
from lakeingest.apply.window import decide
from lakeingest.apply.window.end_markers import EndMarker
from lakeingest.apply.window.incomplete_transaction import IncompleteTransaction
from lakeingest.apply.window.window import Window
from lakeingest.errors import TransientError
from lakeingest.ledger.publication import Publication
from lakeingest.sink.contract import TableState
from lakeingest.sink.delta.sink import DeltaSink
from lakeingest.sink.merge_law import MergeLaw
from lakeingest.transaction import completeness

__all__ = ["LOST_REPLY", "SWITCHES", "Switch", "switched_off"]

Switch = Callable[[pytest.MonkeyPatch], None]

LOST_REPLY = "LAKEINGEST_LOST_REPLY"
"""Environment variable: the answer of which table commit of the process is lost; the third."""


def count_repeats(patch: pytest.MonkeyPatch) -> None:
    """Let every record count as a row, also one that came before."""
    patch.setattr(completeness, "_row_place", lambda: F.xxhash64("topic", "partition", "offset"))


def trust_ends(patch: pytest.MonkeyPatch) -> None:
    """Let every transaction be complete whose END was read, whatever of it is there."""

    def everything(
        ends: Sequence[EndMarker], _passed: str | None, *_lacking: IncompleteTransaction | None
    ) -> tuple[None, list[EndMarker]]:
        return None, list(ends)

    patch.setattr(decide, "complete_prefix", everything)


def publish_first(patch: pytest.MonkeyPatch) -> None:
    """Publish a batch when its first table is committed; the next publication shows the others."""
    apply, publish = BatchWriter._apply, Publisher._publish

    def torn(
        self: BatchWriter, window: Window, batch: PreparedBatch, state: LakeState
    ) -> tuple[list[Publication], Written]:
        one, others = batch.parts[:1], batch.parts[1:]
        early, first = apply(self, window, replace(batch, parts=one), state)
        summary = BatchSummary(early[-1].batch, 1, 1, 0.0, first.rows)
        publish(Publisher(self.ledger, lambda _: None), window, batch.index, early, summary)
        late, more = apply(self, window, replace(batch, parts=others), state)
        whole = [
            replace(e, tables={**one_later.tables, **{n: e.tables[n] for n in first.changed}})
            for e, one_later in zip(early, late, strict=True)
        ]
        commits, rows = {**first.commits, **more.commits}, {**first.rows, **more.rows}
        return whole, Written(commits, rows, first.jobs + more.jobs)

    def tell(
        self: Publisher,
        _window: Window,
        _index: int,
        _publications: Sequence[Publication],
        summary: BatchSummary,
    ) -> None:
        self._published(summary)

    patch.setattr(BatchWriter, "_apply", torn)
    patch.setattr(Publisher, "_publish", tell)


def take_whatever_comes(patch: pytest.MonkeyPatch) -> None:
    """Let a payload win over its row in the table, be it newer or older."""
    patch.setattr(MergeLaw, "newer", property(lambda _: F.lit(True)))


def lose_a_reply(patch: pytest.MonkeyPatch) -> None:
    """Let one table commit succeed and its caller hear of a failure."""
    apply: Callable[..., TableState] = DeltaSink.apply
    number = int(os.environ.get(LOST_REPLY, "3"))
    lock, commits = Lock(), 0

    def unheard(self: DeltaSink, *arguments: Any) -> TableState:
        nonlocal commits
        result = apply(self, *arguments)
        with lock:
            commits += 1
            lost = commits == number
        if lost:
            message = f"the answer to commit {number} of a table was lost"
            raise TransientError(message)
        return result

    patch.setattr(DeltaSink, "apply", unheard)


SWITCHES: Mapping[str, Switch] = {
    "deduplication": count_repeats,
    "completeness": trust_ends,
    "publish-last": publish_first,
    "position-compare": take_whatever_comes,
    "lost-reply": lose_a_reply,
}
"""Four protections, and a fault that they must stand."""


@contextmanager
def switched_off(name: str) -> Iterator[None]:
    """Do without one of ``SWITCHES`` until the block ends."""
    with pytest.MonkeyPatch.context() as patch:
        SWITCHES[name](patch)
        yield
