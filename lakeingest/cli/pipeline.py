"""What nearly every command begins with: the configuration, its warnings, and a Spark session.

A command does not stop the session it used: in a notebook or a test the next command goes on with
it. Only the process that was started for one command stops it at its end, in ``main``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from lakeingest.cli.output import warn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakeingest.config import PipelineConfig

_PLATFORM = frozenset({"DATABRICKS_RUNTIME_VERSION", "PYSPARK_GATEWAY_PORT"})


def load_pipeline(path: str, settings: Sequence[str] | None) -> PipelineConfig:
    """Load a configuration and write its warnings to stderr.

    Raises:
        ConfigError: It is missing or wrong.
        UsageError: A setting is not of the form ``key=value``.
    """
    from lakeingest.config import load_config

    config = load_config(path, settings or ())
    warn(config.warnings)
    return config


def start_spark(
    app_name: str,
    config: PipelineConfig,
    *,
    kafka: bool = False,
    brief: bool = True,
    master: str | None = None,
) -> SparkSession:
    """Return the session to work with; one is started if there is none.

    Args:
        app_name: Name that a new session shows.
        config: The pipeline; its tables' formats are what a new session can read.
        kafka: Whether a new session can read Kafka.
        brief: Whether the command ends within a minute or so, however much there is.
        master: Spark master of a new session; null: this machine.

    Raises:
        ConfigError: Spark or Delta is not installed.
        UnavailableError: Java or a jar is missing.
    """
    from lakeingest.session import session

    open_one = session if master is None else partial(session, master=master)
    hudi = "hudi" in config.formats()
    return open_one(app_name=app_name, kafka=kafka, hudi=hudi, brief=brief)


def stop_spark() -> None:
    """Stop the session that a command started, if any, with the jobs that still run after Ctrl-C.

    A session that a platform provides is left as it was found.
    """
    if "pyspark.sql" not in sys.modules or _PLATFORM & set(os.environ):
        return
    from pyspark.sql import SparkSession

    spark = SparkSession.getActiveSession()
    if spark is not None:
        spark.stop()
