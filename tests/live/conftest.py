from __future__ import annotations

from tests.live.fixtures import chain
from tests.rig.kafka import broker

__all__ = ["broker", "chain"]
