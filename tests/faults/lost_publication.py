"""A crash between tables and their publication, made at will: tables are ahead of the ledger.

The publication waits until the next batch is in its tables, and never happens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event
from typing import Any

import pytest

from lakeingest.apply.batch.prepare import PreparedBatch
from lakeingest.apply.batch.publish import Publisher
from lakeingest.apply.batch.writer import BatchWriter
from lakeingest.apply.lake import LakeState
from lakeingest.apply.summary import BatchSummary
from lakeingest.apply.window.window import Window
from lakeingest.ledger.publication import Publication

LOST = 2
"""The publication that never happens, by default."""


class CrashError(Exception):
    """Stands for the end of the process."""


def lose_a_publication(
    monkeypatch: pytest.MonkeyPatch, number: int = LOST, wait_seconds: float = 120.0
) -> Sequence[int]:
    """Let a publication wait until the next batch is written, and then never happen.

    Returns:
        The batches that a run begins to write from then on.
    """
    apply: Callable[..., Any] = BatchWriter._apply
    publish: Callable[..., None] = Publisher._publish
    written, begun = Event(), list[int]()

    def tell(self: BatchWriter, window: Window, batch: PreparedBatch, state: LakeState) -> Any:
        begun.append(state.head.batch + 1)
        result = apply(self, window, batch, state)
        if result[0][-1].batch > number:
            written.set()
        return result

    def lose(
        self: Publisher,
        window: Window,
        index: int,
        publications: Sequence[Publication],
        summary: BatchSummary,
    ) -> None:
        if publications[-1].batch == number:
            written.wait(wait_seconds)
            raise CrashError
        publish(self, window, index, publications, summary)

    monkeypatch.setattr(BatchWriter, "_apply", tell)
    monkeypatch.setattr(Publisher, "_publish", lose)
    return begun
