"""Work beside a run."""

from __future__ import annotations

import threading
from unittest.mock import Mock

import pytest

from lakeingest.engine.in_turn import InTurn


def test_work_on_a_subject_is_left_out_while_other_work_on_it_is_unfinished() -> None:
    pieces, done, go_on = InTurn("A piece"), list[str](), threading.Event()

    def first() -> None:
        go_on.wait(60)
        done.append("a, first")

    pieces.begin("a", first)
    pieces.begin("a", lambda: done.append("a, second"))
    pieces.begin("b", lambda: done.append("b"))
    go_on.set()
    pieces.finish()
    assert done == ["a, first", "b"]


def test_what_fails_is_logged_in_short_and_followed_by_other_work(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pieces, done = InTurn("A piece"), threading.Event()

    message = f"first line\nthe cause {'x' * 10_000}\nthird line"
    pieces.begin("a", Mock(side_effect=ValueError(message)))
    pieces.begin("b", done.set)
    pieces.finish()
    assert done.is_set()
    [record] = caplog.records
    assert record.getMessage().startswith("A piece failed: ValueError first line the cause xxx")
    assert len(record.getMessage()) < 400


def test_work_on_a_subject_begins_again_after_work_that_failed() -> None:
    pieces, failed, done = InTurn("A piece"), threading.Event(), threading.Event()
    pieces.begin("a", Mock(side_effect=ValueError))
    pieces.begin("b", failed.set)
    assert failed.wait(60)
    pieces.begin("a", done.set)
    pieces.finish()
    assert done.is_set()
