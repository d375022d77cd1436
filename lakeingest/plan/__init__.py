"""The pure half: DataFrames in, DataFrames out; no action, no session, no clock."""
