"""Check whether a pipeline could run, without changing anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

from pyspark.sql import SparkSession

from lakeingest.apply.adoption.adopt import Adoption, adopted_collections
from lakeingest.apply.as_published import as_published
from lakeingest.apply.choice.retirement import rows_since
from lakeingest.apply.factory import (
    open_adoption,
    open_ledger,
    refuse_unfenced,
    storage_of,
)
from lakeingest.apply.guards.order import refuse_another_order
from lakeingest.apply.guards.unmatched_tables import topics_left_out, without_topic
from lakeingest.apply.inspect.next_batch import NextBatch
from lakeingest.apply.inspect.pipeline_parts import PipelineParts, open_parts
from lakeingest.apply.inspect.refusals import Refusals
from lakeingest.apply.lake import LakeState, with_every_table
from lakeingest.apply.run_session import run_session
from lakeingest.apply.table.catalog import TableBook, Warnings
from lakeingest.apply.table.new_tables import likely_tables
from lakeingest.apply.table.record_schemas import open_schemas
from lakeingest.apply.window.offset_ranges import plan_all_ranges
from lakeingest.config.model import PipelineConfig
from lakeingest.engine.storage_errors import storage
from lakeingest.engine.target_probe import try_to_write
from lakeingest.source import open_source
from lakeingest.source.contract import Retaining
from lakeingest.source.topics import has_topic

_TRIED_RECORDS = 10_000
"""Records of which ``validate`` prepares a batch: enough to see each busy table, soon read."""


_NOT_TRIED: tuple[str, ...] = ()


@dataclass(frozen=True)
class Findings:
    """Result of a check of a pipeline.

    Attributes:
        warnings: What a person should look at before a run; includes the configuration's warnings.
        seen: What was checked, as text.
    """

    warnings: tuple[str, ...]
    seen: tuple[str, ...] = ()


def validate_pipeline(spark: SparkSession | None, config: PipelineConfig) -> Findings:
    """Check configuration, source and lake; what is written for it is removed again.

    Args:
        spark: Session with Delta, and with Hudi if there are Hudi tables; None: check the
            configuration alone.
        config: The pipeline.

    Raises:
        LakeingestError: The pipeline could not run.
    """
    if spark is None:
        return Findings(config.warnings)
    spark = run_session(spark)
    warnings = Warnings()
    warnings.add(*config.warnings, *_refuse_unreachable(spark, config))
    with open_parts(spark, config) as parts:
        return _findings(spark, parts, warnings)


def _refuse_unreachable(spark: SparkSession, config: PipelineConfig) -> tuple[str, ...]:
    """Stop unless lake, source and registry can be used; return what is risky about the lake.

    Raises:
        LakeingestError: With all that is wrong with them.
    """
    refusals, warnings = Refusals(), tuple[str, ...]()
    with refusals.of_check():
        warnings = refuse_unfenced(spark, config)
    with refusals.of_check(), storage(*storage_of(config)):
        try_to_write(spark, config.target.path)
        config = as_published(config, open_ledger(spark, config, "").head())
    with refusals.of_check(), closing(open_source(spark, config.source)) as source:
        source.topics()
    with refusals.of_check(), closing(open_schemas(spark, config.source)) as schemas:
        schemas.check()
    refusals.stop()
    return warnings


def _findings(spark: SparkSession, parts: PipelineParts, warnings: Warnings) -> Findings:
    config, log, sink, source = parts.config, parts.log, parts.sink, parts.source
    TableBook(spark, config, log.spec, sink, warnings.add)
    topics = source.topics()
    collections = likely_tables(config, topics)
    begin, trial = None, _NOT_TRIED
    if adopted_collections(config):
        tables = open_adoption(spark, config)
        begin = Adoption(config, log, tables, parts.ledger, "").begin(topics)
    # A table has no owner until its adoption, and reading its state refuses such a table.
    state = with_every_table(LakeState(parts.head, {}), sink, () if begin else collections)
    refuse_another_order(state.head, log.spec)
    frontier = begin.alignment.frontier if begin else state.head.frontier
    ranges = plan_all_ranges(source, config, frontier)
    left_out = topics_left_out(config, _topics_of_prefix(spark, config, topics))
    ends = [config.source.ends_topic] if config.source.ends_topic else []
    risks = source.risks([*topics, *ends]) if isinstance(source, Retaining) else ()
    warnings.add(*ranges.accepted, *risks, *rows_since(source, parts.head.retired), *left_out)
    if begin is None:
        trial = _tried(NextBatch(spark, parts, state))
    warnings.add(*without_topic(config, topics, state.head.tables), *_weaker_than_topics(parts))
    summary = f"{len(topics)} topics, {len(state.tables)} tables, batch {state.head.batch}"
    if begin:
        summary += f", {len(collections)} tables to be adopted"
    return Findings(warnings.all(), (summary, *trial, *_needed_of_readers(config)))


def _weaker_than_topics(parts: PipelineParts) -> Iterator[str]:
    """Yield a warning where the topics would show more than the mode asks for."""
    source = parts.config.source
    if source.transaction_mode == "boundary" and has_topic(parts.source, source.transaction_topic):
        yield (
            f"topic {source.transaction_topic} counts the rows of each transaction, and "
            "lakeingest.transaction.mode=boundary does not read it: nothing shows a row that is "
            "missing. Set lakeingest.transaction.mode=metadata and another lakeingest.target.path"
        )


def _tried(following: NextBatch) -> tuple[str, ...]:
    """Prepare a batch of the first records that wait, and say which.

    Raises:
        LakeingestError: A run would stop at them.
    """
    window = following.read(_TRIED_RECORDS)
    if window is None:
        return ("nothing waits",)
    following.refuse(window)
    if not window.batches:
        return ("records wait; the first of them complete no transaction",)
    return ("the first records that wait can be applied",)


def _needed_of_readers(config: PipelineConfig) -> Iterator[str]:
    target = config.target
    direct = "delta" in config.formats() and target.delta_commit == "direct"
    if direct and target.delta_deletion_vectors:
        yield (
            "large Delta tables get deletion vectors, which their readers must support "
            "(lakeingest.delta.deletion.vectors=false: none; guide page 'reading')"
        )


def _topics_of_prefix(
    spark: SparkSession, config: PipelineConfig, selected: Sequence[str]
) -> Sequence[str]:
    """Return the data topics that would be read without ``lakeingest.source.topics``."""
    if not config.source.topics and config.source.topic_pattern is None:
        return selected
    every = config.source.model_copy(update={"topics": (), "topic_pattern": None})
    with closing(open_source(spark, every)) as source:
        return source.topics()
