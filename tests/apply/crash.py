"""Crash a run or a command at a failpoint."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def crashing_at(place: str, module: object) -> Iterator[None]:
    """Crash the block at a failpoint, which it must pass.

    Args:
        place: The failpoint's name.
        module: Module that passes it.
    """

    def crash(name: str) -> None:
        if name == place:
            raise RuntimeError(name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "failpoint", crash)
        with pytest.raises(RuntimeError, match=re.escape(place)):
            yield
