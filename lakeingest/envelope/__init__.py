"""Envelopes to changes: what a record is, where it stands in the log, whose transaction it is."""

from lakeingest.envelope.change import changes

__all__ = ["changes"]
