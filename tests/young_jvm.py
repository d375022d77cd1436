"""How a JVM compiles that will not live long: quickly.

What tests and kills start lives for seconds or minutes. Nearly half of the processor time of a JVM
in its first half minute went into compiling optimised code that it hardly got to use: four small
batches, from the start, took 65 processor seconds; with the quick compiler alone, 39 (measured).
Benchmarks must not do this. Nor does the session of many tests, which lives for many minutes
(``long_lived``): it optimises what is called five times as often as Java asks for. Tests differ, so
Java still finds code to optimise after twenty minutes. The first twenty small runs of a session,
from its start, took 181 processor seconds with Java's own bounds, and 155 with these (measured);
with the quick compiler alone, tests take up to twice as long from the tenth minute on.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lakeingest.engine import few_rows
from lakeingest.engine.few_rows import FOR_FEW_ROWS
from lakeingest.session.settings import QUICKLY_COMPILED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OPTIONS = "SPARK_SUBMIT_OPTS"
_FEW_ROWS = few_rows.FEW_ROWS

_TRUSTED = "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""Spark's classes are not verified when they are loaded: some five processor seconds of a JVM."""

_SELDOM_OPTIMISED = (
    "-XX:Tier4InvocationThreshold=25000 -XX:Tier4MinInvocationThreshold=3000 "
    "-XX:Tier4CompileThreshold=75000 -XX:Tier4BackEdgeThreshold=200000 "
    "-XX:ReservedCodeCacheSize=480m"
)
"""Code that is not optimised yet takes more room: after twenty minutes it had filled nearly all of
what Java reserves for it by default (107 of 120 MB), and Java then throws code away."""

GENERATED_CODE = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.shuffle.partitions": "2",
    # As a run with few partitions has it: see ``apply.run_session``.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "10MB",
}
"""Spark's settings with code generation.

A run generates Java code for plans over many rows. A test has few rows and runs most of its plans
once: without the code, the same tests took 77 % of the processor time, and with one partition and
the session's other settings 68 % (measured). So tests have the settings that a run has for few
rows. Some tests of the law, the live databases and a recorded run have the other ones, so that a
defect of generated code or of partitions alone is found.
"""


def compile_quickly() -> None:
    """Let every Spark that this process starts, or its children do, compile quickly."""
    os.environ.setdefault(_OPTIONS, f"{_TRUSTED} {QUICKLY_COMPILED}")


@contextmanager
def long_lived() -> Iterator[None]:
    """Let a Spark that starts meanwhile optimise code, if seldom; later ones compile quickly."""
    options = os.environ.get(_OPTIONS, "")
    os.environ[_OPTIONS] = options.replace(QUICKLY_COMPILED, _SELDOM_OPTIMISED)
    try:
        yield
    finally:
        os.environ[_OPTIONS] = options


def generate_code(spark: SparkSession, generate: bool) -> None:
    """Let Spark, and runs of lakeingest, generate code from now on, or suit few rows."""
    few_rows.FEW_ROWS = 0 if generate else _FEW_ROWS
    for name, value in (GENERATED_CODE if generate else FOR_FEW_ROWS).items():
        spark.conf.set(name, value)
