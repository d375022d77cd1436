"""The settings of a pipeline that hold for its tables of every format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lakeingest.folders import LakeFolders
from lakeingest.frame_schemas import MetadataColumns


@dataclass(frozen=True, kw_only=True)
class SinkSettings:
    """Settings of a sink.

    Attributes:
        folders: Folders of the tables.
        pipeline: Name of the pipeline that owns the tables.
        names: Names of the metadata columns.
        hard: Whether a delete removes its row.
        null_missing: Whether a column without any known value becomes NULL.
        foreign: Whether other writers may change rows.
        notes: Returns the notes that the ledger has of a table's commits
            (``progress.note_from_ledger``).
    """

    folders: LakeFolders
    pipeline: str
    names: MetadataColumns
    hard: bool = False
    null_missing: bool = False
    foreign: bool = False
    notes: Callable[[str], Sequence[str]] = lambda _: ()
