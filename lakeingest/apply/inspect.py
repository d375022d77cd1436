"""Look at a pipeline without changing anything: its status, and whether it could run."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass

from pyspark.sql import SparkSession

from lakeingest.apply.adoption import Adoption, adopted_collections
from lakeingest.apply.lake import read_lake
from lakeingest.apply.opening import opened_adoption, opened_ledger, opened_sink, storage_of
from lakeingest.apply.order import refuse_another_order
from lakeingest.apply.reach import plan_reach
from lakeingest.apply.run import counted, pipeline_spec
from lakeingest.apply.schemas import opened_schemas
from lakeingest.apply.tables import TableBook, Warnings
from lakeingest.apply.unread import without_topic
from lakeingest.config.model import PipelineConfig
from lakeingest.engine.storage_errors import storage
from lakeingest.source import open_source


@dataclass(frozen=True)
class Findings:
    """What a look at a pipeline found.

    Attributes:
        warnings: What a person should look at before a run, the configuration's own among it.
        seen: What was looked at.
    """

    warnings: tuple[str, ...]
    seen: tuple[str, ...] = ()


def pipeline_status(spark: SparkSession, config: PipelineConfig) -> Mapping[str, object]:
    """Return where the pipeline stands: flat, printable.

    Raises:
        LakeingestError: Lake or source cannot be read.
    """
    with (
        storage(*storage_of(config)),
        closing(open_source(spark, config.source)) as source,
    ):
        head = opened_ledger(spark, config, "").head()
        frontier = head.frontier
        reach = plan_reach(source, config.source.ends_topic, frontier, 2**62)
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


def validate_pipeline(spark: SparkSession | None, config: PipelineConfig) -> Findings:
    """Check configuration, source and lake without writing.

    Args:
        spark: Session with Delta, and Hudi if tables are; null: look at the configuration alone.
        config: The pipeline.

    Raises:
        LakeingestError: The pipeline could not run.
    """
    if spark is None:
        return Findings(config.warnings)
    warnings = Warnings()
    for text in config.warnings:
        warnings.add(text)
    with (
        storage(*storage_of(config)),
        closing(open_source(spark, config.source)) as source,
        closing(opened_schemas(spark, config.source)) as schemas,
    ):
        ledger, sink = opened_ledger(spark, config, ""), opened_sink(spark, config)
        spec = pipeline_spec(config, schemas.format)
        TableBook(spark, config, spec, sink, warnings.add)
        schemas.check()
        topics = source.topics()
        prefix = f"{config.source.topic_prefix}."
        collections = [topic.removeprefix(prefix) for topic in topics]
        begin = None
        if adopted_collections(config):
            tables = opened_adoption(spark, config)
            begin = Adoption(
                config, source, tables, ledger, spec, schemas, counted(config), ""
            ).begin(collections)
        # Tables that are adopted later are nobody's until then, which ``read_lake`` refuses.
        state = read_lake(ledger, sink, ()) if begin else read_lake(ledger, sink, collections)
        refuse_another_order(state.head, spec)
        frontier = begin.found.frontier if begin else state.head.frontier
        plan_reach(source, config.source.ends_topic, frontier, 2**62)
    for text in without_topic(config, {*collections, *state.head.tables}):
        warnings.add(text)
    seen = f"{len(topics)} topics, {len(state.tables)} tables, batch {state.head.batch}"
    if begin:
        seen += f", {len(collections)} tables to be adopted"
    return Findings(warnings.all(), (seen,))
