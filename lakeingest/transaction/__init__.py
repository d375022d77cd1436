"""The transaction buffer: which source transactions are complete, in commit order."""
