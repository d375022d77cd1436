"""One commit of a lake table, whatever its format."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Commit:
    """One commit.

    Attributes:
        version: By which the table can be read as it was then; a later commit has a higher one.
        metadata: The text that its writer left; null: none.
        checkpoint: Hudi Streamer's, where it is the writer; null: it is not.
    """

    version: int
    metadata: str | None
    checkpoint: str | None = None
