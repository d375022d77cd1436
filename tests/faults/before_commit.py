"""Calls a test before each version that a batch makes of a table at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from lakeingest.sink.contract import Changeset, TableState, nothing
from lakeingest.sink.delta.sink import DeltaSink


@contextmanager
def before_each_version(
    monkeypatch: pytest.MonkeyPatch, call: Callable[[str, int], None]
) -> Iterator[None]:
    """Call with the table and the number of the batch's versions so far; it may raise an error."""
    apply_each: Callable[..., Sequence[TableState]] = DeltaSink.apply_each

    def called(
        self: DeltaSink,
        changeset: Changeset,
        notes: Any,
        previous: TableState,
        _: Callable[[int], None] = nothing,
    ) -> Sequence[TableState]:
        def before_commit(commits: int) -> None:
            call(previous.note.collection, commits)

        return apply_each(self, changeset, notes, previous, before_commit)

    with monkeypatch.context() as patch:
        patch.setattr(DeltaSink, "apply_each", called)
        yield
