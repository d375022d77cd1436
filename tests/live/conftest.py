from __future__ import annotations

from tests.live.fixtures import chain

__all__ = ["chain"]
