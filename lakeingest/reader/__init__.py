"""Read publications as consistent DataFrames and views."""

from lakeingest.reader.lake import Lake, Snapshot, open_lake

__all__ = ["Lake", "Snapshot", "open_lake"]
