"""Changes of complete transactions to one merge payload per key."""
