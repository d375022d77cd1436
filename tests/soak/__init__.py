"""Minutes of faults against a live run: ``python -m tests.soak``."""
