"""Let what a test patches reach columns that lakeingest has made before.

A column that is made once (``engine/known_columns.py``) was made by the code of then. A test that
switches a protection off would meet it still on, and leave columns without it to the tests behind.
So each patch, and its end, makes lakeingest forget its columns.
"""

from __future__ import annotations

from typing import Any

import pytest

from lakeingest.engine.known_columns import forget

_setattr, _undo = pytest.MonkeyPatch.setattr, pytest.MonkeyPatch.undo


def _patch_and_forget(self: pytest.MonkeyPatch, *arguments: Any, **others: Any) -> None:
    _setattr(self, *arguments, **others)
    forget()


def _undo_and_forget(self: pytest.MonkeyPatch) -> None:
    _undo(self)
    forget()


def reach_kept_columns() -> None:
    """Let every patch of pytest's do so."""
    for name, function in (("setattr", _patch_and_forget), ("undo", _undo_and_forget)):
        setattr(pytest.MonkeyPatch, name, function)
