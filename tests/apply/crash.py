"""Crash a run or a command at a failpoint."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def crashing_at(place: str, module: object, nth: int = 1) -> Iterator[None]:
    """Crash the block at a failpoint, which it must pass.

    Args:
        place: The failpoint's name.
        module: Module that passes it.
        nth: Which pass crashes.
    """
    passed: list[str] = []

    def crash(name: str) -> None:
        passed.append(name)
        if name == place and passed.count(place) >= nth:
            raise RuntimeError(name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "failpoint", crash)
        with pytest.raises(RuntimeError, match=re.escape(place)):
            yield
