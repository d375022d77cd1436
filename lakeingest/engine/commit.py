"""One commit of a lake table, whatever its format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Commit:
    """One commit.

    Attributes:
        version: By which the table can be read as it was then; a later commit has a higher one.
        metadata: The text that its writer left; null: none.
        checkpoint: Hudi Streamer's, where it is the writer; null: it is not.
        operation: What its writer calls it (``MERGE``, ``upsert``); empty: nothing.
        restored: Version that it brings back; null: it is no restore to a version.
        asked_change: Gives ``changes_rows``, which may take a reading.
    """

    version: int
    metadata: str | None
    checkpoint: str | None = None
    operation: str = ""
    restored: int | None = None
    asked_change: Callable[[], bool] = lambda: False

    @property
    def changes_rows(self) -> bool:
        """Whether the table's rows are others after it; maintenance writes them anew at most."""
        return self.asked_change()
