"""Benchmarks: the pipeline against hand-written recipes and the floor, on the same events."""
