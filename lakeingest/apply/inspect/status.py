"""Read where a pipeline stands, without changing anything."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing

from pyspark.sql import SparkSession

from lakeingest.apply.as_published import as_published
from lakeingest.apply.factory import open_ledger, storage_of
from lakeingest.apply.window.offset_ranges import plan_all_ranges
from lakeingest.config.model import PipelineConfig
from lakeingest.engine.storage_errors import storage
from lakeingest.source import open_source


def pipeline_status(spark: SparkSession, config: PipelineConfig) -> Mapping[str, object]:
    """Return the state of the pipeline: flat, printable values.

    Raises:
        LakeingestError: Lake or source cannot be read.
    """
    with storage(*storage_of(config)):
        head = open_ledger(spark, config, "").head()
        frontier = head.frontier
        config = as_published(config, head)
        source = open_source(spark, config.source)
    with storage(*storage_of(config)), closing(source):
        ranges = plan_all_ranges(source, config, frontier)
    not_applied = sum(part.end - part.start for part in ranges.data)
    ends = ranges.transactions
    return {
        "pipeline": config.name,
        "batch": head.batch,
        "tables": dict(sorted(head.shown.items())),
        "retired_tables": sorted(head.retired),
        "reloading_tables": sorted(head.reloads),
        "snapshot_applied": frontier.streaming,
        "epoch": frontier.newest_epoch,
        "end_offset": frontier.end_offset,
        "jobs_of_last_batch": head.jobs,
        "records_not_applied": not_applied,
        "transaction_records_not_applied": ends.end - ends.start if ends else 0,
        "last_run": head.run,
    }
