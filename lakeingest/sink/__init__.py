"""Merge payloads to one commit per table: the only stage that writes tables."""
