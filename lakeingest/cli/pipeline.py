"""Load the configuration, write its warnings, and start Spark: the first steps of most commands.

A command does not stop its session: in a notebook or a test the next command uses the session
again. Only a process that runs a single command stops the session at its end, in ``main``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from lakeingest.cli.output import warn
from lakeingest.cli.stopping import keep_signals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakeingest.config import PipelineConfig

_PLATFORM = frozenset({"DATABRICKS_RUNTIME_VERSION", "PYSPARK_GATEWAY_PORT"})


def load_pipeline(path: str, settings: Sequence[str] | None) -> PipelineConfig:
    """Load a configuration and write its warnings to stderr.

    Raises:
        ConfigError: The configuration is missing or wrong.
        UsageError: A setting has not the form ``key=value``.
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
    jdbc: bool = False,
    brief: bool = True,
    master: str | None = None,
) -> SparkSession:
    """Return the active Spark session, or start a new one.

    Args:
        app_name: Name of a new session.
        config: The pipeline; a new session can read the formats of its tables.
        kafka: Whether a new session can read Kafka.
        jdbc: Whether a new session can query databases.
        brief: Whether the command ends within a minute or so, whatever the amount of data.
        master: Spark master of a new session; ``None``: this machine.

    Raises:
        ConfigError: Spark or Delta is not installed.
        UnavailableError: Java or a jar is missing.
    """
    from lakeingest.session import session

    open_session = partial(session, jdbc=True) if jdbc else session
    if master is not None:
        open_session = partial(open_session, master=master)
    hudi = "hudi" in config.formats()
    spark = open_session(app_name=app_name, kafka=kafka, hudi=hudi, brief=brief)
    keep_signals(spark)
    return spark


def stop_spark() -> None:
    """Stop the session that a command started, if any; leave a session of the platform as it is."""
    if "pyspark.sql" not in sys.modules or _PLATFORM & set(os.environ):
        return
    from pyspark.sql import SparkSession

    spark = SparkSession.getActiveSession()
    if spark is not None:
        spark.stop()
