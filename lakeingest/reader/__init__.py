"""Read publications as consistent DataFrames and views."""

from lakeingest.reader.diff import Diff
from lakeingest.reader.lake import Lake, open_lake
from lakeingest.reader.snapshot import Snapshot

__all__ = ["Diff", "Lake", "Snapshot", "open_lake"]
