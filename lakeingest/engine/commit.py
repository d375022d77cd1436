"""One commit of a lake table, in one form for all table formats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Commit:
    """One commit of a lake table.

    Attributes:
        version: Version at which a reader sees the table as of this commit. A later commit has a
            higher version.
        metadata: Text that the writer stored in the commit; None: no text.
        checkpoint: Checkpoint of Hudi Streamer; None: Hudi Streamer did not write the commit.
        operation: Writer's name for the operation (``MERGE``, ``upsert``); empty: no name.
        restored: Version that the commit restores; None: the commit restores no version.
        changes_rows: Returns whether the commit changes rows; maintenance at most rewrites the same
            rows. A function, because it may have to read the commit.
    """

    version: int
    metadata: str | None
    checkpoint: str | None = None
    operation: str = ""
    restored: int | None = None
    changes_rows: Callable[[], bool] = lambda: False
