"""How a JVM compiles that will not live long: quickly.

What tests and kills start lives for seconds or minutes. Nearly half of the processor time of a JVM
in its first half minute went into compiling optimised code that it hardly got to use: four small
batches, from the start, took 65 processor seconds; with the quick compiler alone, 39 (measured).
Benchmarks must not do this. Nor does the session of many tests, which lives for many minutes
(``long_lived``): in its third minute, tests took a tenth less with optimised code (measured).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from lakeingest.session.settings import QUICKLY_COMPILED

_OPTIONS = "SPARK_SUBMIT_OPTS"


def compile_quickly() -> None:
    """Let every Spark that this process starts, or its children do, compile quickly."""
    os.environ.setdefault(_OPTIONS, QUICKLY_COMPILED)


@contextmanager
def long_lived() -> Iterator[None]:
    """Let a Spark that starts meanwhile optimise its code; later ones compile quickly again."""
    options = os.environ.pop(_OPTIONS, None)
    try:
        yield
    finally:
        if options is not None:
            os.environ[_OPTIONS] = options
