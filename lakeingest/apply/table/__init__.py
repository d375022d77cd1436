"""Resolve a table: its columns, its key, and the schemas its records were written with."""
