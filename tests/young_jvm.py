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
from typing import TYPE_CHECKING

from lakeingest.session.settings import QUICKLY_COMPILED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OPTIONS = "SPARK_SUBMIT_OPTS"

GENERATED_CODE = {
    "spark.sql.codegen.wholeStage": ("true", "false"),
    "spark.sql.codegen.factoryMode": ("FALLBACK", "NO_CODEGEN"),
    "spark.sql.shuffle.partitions": ("2", "1"),
}
"""Settings of Spark, with code generation as production has it, and as most tests run.

Production generates Java code for each plan, and compiles it. A test runs most of its plans once:
without the code, the same tests took 77 % of the processor time, and with one partition and the
session's other settings 68 % (measured). The law, the live databases, a recorded run and every
process that a test starts run as production does, so that a defect of generated code or of
partitions alone is found.
"""


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


def generate_code(spark: SparkSession, generate: bool) -> None:
    """Let Spark run plans as production does, or as most tests do, from now on."""
    for name, (generated, interpreted) in GENERATED_CODE.items():
        spark.conf.set(name, generated if generate else interpreted)
