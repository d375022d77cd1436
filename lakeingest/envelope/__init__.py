"""Turn envelopes into changes: the kind of a record, its place in the log, its transaction."""

from lakeingest.envelope.change import ChangeSpec, change_steps, changes

__all__ = ["ChangeSpec", "change_steps", "changes"]
