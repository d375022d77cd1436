"""How a JVM compiles that will not live long: quickly.

What tests and kills start lives for seconds or minutes. Nearly half of the processor time of a JVM
in its first half minute went into compiling optimised code that it hardly got to use: four small
batches, from the start, took 65 processor seconds; with the quick compiler alone, 39 (measured).
Benchmarks must not do this.
"""

from __future__ import annotations

import os

from lakeingest.session.settings import QUICKLY_COMPILED


def compile_quickly() -> None:
    """Let every Spark that this process starts, or its children do, compile quickly."""
    os.environ.setdefault("SPARK_SUBMIT_OPTS", QUICKLY_COMPILED)
