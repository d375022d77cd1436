"""What a workload did, kind by kind: a test that asserts nothing of a kind has not tested it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Counts:
    """The account of one run of a workload.

    Attributes:
        seconds: How long it ran.
        committed: Transactions known to be committed.
        rolled_back: Transactions that were to be rolled back, and were.
        conflicts: Attempts that the database ended: deadlock, serialization, a key taken.
        lost: Attempts whose connection broke before the commit was sent; they are rolled back.
        unknown: Commits whose answer was lost; each is one of the next two once asked.
        found: Unknown ones that the witness showed to be committed; not counted in ``committed``.
        gone: Unknown ones that the witness showed to be rolled back.
        reconnects: Connections opened after the first one of a client.
        steps: Committed (or, if that was the point, rolled back) transactions by kind of step.
        changes: What committed transactions did: rows by operation, and special kinds of change.
    """

    seconds: float = 0.0
    committed: int = 0
    rolled_back: int = 0
    conflicts: int = 0
    lost: int = 0
    unknown: int = 0
    found: int = 0
    gone: int = 0
    reconnects: int = 0
    steps: Counter[str] = field(default_factory=Counter)
    changes: Counter[str] = field(default_factory=Counter)

    def as_json(self) -> str:
        """Return the account as one line of JSON."""
        return json.dumps({**vars(self), "seconds": round(self.seconds, 1)})

    def write(self, path: Path) -> None:
        """Write the account beside the oracle, as recorded runs have it."""
        path.write_text(self.as_json() + "\n", encoding="utf-8")
