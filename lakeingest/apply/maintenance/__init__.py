"""Maintenance of a lake: what keeps its tables healthy, and changes no snapshot that is kept."""
