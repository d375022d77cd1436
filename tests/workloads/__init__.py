"""Workloads for real databases, each with a witness of its own that says what must be there."""
