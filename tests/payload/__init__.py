"""The changes of a key, folded to one merge payload."""
