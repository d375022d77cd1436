"""The Hudi sink."""
