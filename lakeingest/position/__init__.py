"""Positions: the one total order of events in a source's log (vocabulary for every stage).

Stages work with the encoded form (``encoding.py``, ``epochs.py``). ``Lsn``, ``BinlogPosition``,
``GtidSet``, ``HybridTime`` and their like are the same places as exact values, for tools and tests:
no stage uses them, and tests hold the encoded form against them.
"""

from lakeingest.position.binlog import BinlogPosition, Gtid, GtidSet
from lakeingest.position.encoding import (
    COMPONENT_WIDTH,
    EPOCH_WIDTH,
    after,
    component,
    inherited,
    is_missing,
    missing_below,
    position,
    present_entries,
)
from lakeingest.position.epochs import Epoch
from lakeingest.position.hybrid_time import HybridTime
from lakeingest.position.incomparable import IncomparableError
from lakeingest.position.lsn import BlockLsn, Lsn, Scn

__all__ = [
    "COMPONENT_WIDTH",
    "EPOCH_WIDTH",
    "BinlogPosition",
    "BlockLsn",
    "Epoch",
    "Gtid",
    "GtidSet",
    "HybridTime",
    "IncomparableError",
    "Lsn",
    "Scn",
    "after",
    "component",
    "inherited",
    "is_missing",
    "missing_below",
    "position",
    "present_entries",
]
