"""lakeingest: Debezium change events to Delta or Hudi tables, whole source transactions at a time.

A notebook uses it like this::

    spark = lakeingest.session()
    summary = lakeingest.run(spark, lakeingest.load_config("pipeline.properties"))
    orders = lakeingest.open(spark, "lake").snapshot().table("public.orders")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakeingest.config.load import load_config
from lakeingest.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakeingest.apply.choice.reload import Reloading
    from lakeingest.apply.choice.retire import Retirement
    from lakeingest.apply.inspect.explain import Explanation
    from lakeingest.apply.maintenance.maintain import Maintenance
    from lakeingest.apply.summary import RunSummary
    from lakeingest.config.model import PipelineConfig
    from lakeingest.reader import Lake

__version__ = "0.1.0"
__all__ = ["explain", "load_config", "maintain", "open", "reload", "retire", "run", "session"]


def run(spark: SparkSession, config: PipelineConfig, **options: Any) -> RunSummary:
    """Apply everything available and publish it; see ``lakeingest.apply.run.run_pipeline``."""
    from lakeingest.apply.run import run_pipeline

    return run_pipeline(spark, config, **options)


def explain(spark: SparkSession, config: PipelineConfig) -> Explanation:
    """Say where a pipeline stands and why; see ``apply/inspect/explain.py``."""
    from lakeingest.apply.inspect.explain import explain_pipeline

    return explain_pipeline(spark, config)


def maintain(spark: SparkSession, config: PipelineConfig) -> Maintenance:
    """Keep a lake's tables healthy; see ``lakeingest.apply.maintenance.maintain``."""
    from lakeingest.apply.maintenance.maintain import maintain_lake

    return maintain_lake(spark, config)


def retire(
    spark: SparkSession, config: PipelineConfig, table: str, *, undo: bool = False
) -> Retirement:
    """Take a table out of the pipeline; see ``lakeingest.apply.choice.retire.retire_table``."""
    from lakeingest.apply.choice.retire import retire_table

    return retire_table(spark, config, table, undo=undo)


def reload(
    spark: SparkSession, config: PipelineConfig, *tables: str, undo: bool = False
) -> Reloading:
    """Let the next run load tables anew; see ``lakeingest.apply.choice.reload.reload_tables``."""
    from lakeingest.apply.choice.reload import reload_tables

    return reload_tables(spark, config, tables, undo=undo)


def open(spark: SparkSession, path: str, metadata_prefix: str = "_") -> Lake:
    """Open a lake for reading; see ``lakeingest.reader.Lake``."""
    from lakeingest.reader import open_lake

    return open_lake(spark, path, metadata_prefix)
