"""Look at a pipeline without changing anything: its status, and whether it could run."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing

from pyspark.sql import SparkSession

from lakeingest.apply.lake import read_lake
from lakeingest.apply.opening import opened_ledger, opened_sink
from lakeingest.apply.order import refuse_another_order
from lakeingest.apply.reach import plan_reach
from lakeingest.apply.run import pipeline_spec
from lakeingest.apply.schemas import opened_schemas
from lakeingest.apply.tables import TableBook, Warnings
from lakeingest.config.model import PipelineConfig
from lakeingest.source import open_source


def pipeline_status(spark: SparkSession, config: PipelineConfig) -> Mapping[str, object]:
    """Return where the pipeline stands: flat, printable.

    Raises:
        LakeingestError: Lake or source cannot be read.
    """
    head = opened_ledger(spark, config, "").head()
    frontier = head.frontier
    source = open_source(spark, config.source)
    try:
        reach = plan_reach(source, config.source.ends_topic, frontier, 2**62)
    finally:
        source.close()
    waiting = sum(part.end - part.start for part in reach.data)
    ends = reach.transactions
    return {
        "pipeline": config.name,
        "batch": head.batch,
        "tables": dict(sorted(head.tables.items())),
        "snapshot_applied": frontier.streaming,
        "epoch": frontier.newest_epoch,
        "end_offset": frontier.end_offset,
        "records_not_applied": waiting,
        "transaction_records_not_applied": ends.end - ends.start if ends else 0,
        "last_run": head.run,
    }


def validate_pipeline(spark: SparkSession | None, config: PipelineConfig) -> list[str]:
    """Check configuration, source and lake without writing.

    Returns:
        Findings for a person: warnings and what was looked at.

    Raises:
        LakeingestError: The pipeline could not run.
    """
    findings = list(config.warnings)
    if spark is None:
        return findings
    ledger, sink = opened_ledger(spark, config, ""), opened_sink(spark, config)
    warnings = Warnings()
    TableBook(spark, config, pipeline_spec(config), sink, warnings.add)
    with closing(opened_schemas(spark, config.source)) as schemas:
        schemas.check()
    source = open_source(spark, config.source)
    try:
        topics = source.topics()
        prefix = f"{config.source.topic_prefix}."
        collections = [topic.removeprefix(prefix) for topic in topics]
        state = read_lake(ledger, sink, collections)
        refuse_another_order(state.head, pipeline_spec(config))
        plan_reach(source, config.source.ends_topic, state.head.frontier, 2**62)
    finally:
        source.close()
    findings.extend(
        f"lakeingest.table.{name}.*: there is no topic {prefix}{name}"
        for name in config.tables
        if name not in collections
    )
    findings.append(f"{len(topics)} topics, {len(state.tables)} tables, batch {state.head.batch}")
    return findings
