"""Open what a pipeline consists of, for commands that only look at it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass

from pyspark.sql import SparkSession

from lakeingest.apply.as_published import as_published
from lakeingest.apply.factory import open_ledger, open_sink, storage_of
from lakeingest.apply.pipeline_spec import pipeline_log
from lakeingest.apply.table.record_schemas import Schemas, open_schemas
from lakeingest.apply.window.window import PipelineLog
from lakeingest.config.model import PipelineConfig
from lakeingest.engine.storage_errors import storage
from lakeingest.ledger.delta import DeltaLedger
from lakeingest.ledger.publication import Publication
from lakeingest.sink.contract import Sink
from lakeingest.source import open_source
from lakeingest.source.contract import Source


@dataclass(frozen=True)
class PipelineParts:
    """An open pipeline.

    Attributes:
        config: The pipeline, without retired tables.
        ledger: Its publications.
        head: The newest of them.
        sink: Its tables.
        source: Its topics.
        schemas: The schemas of its records.
        log: What a window is read from.
    """

    config: PipelineConfig
    ledger: DeltaLedger
    head: Publication
    sink: Sink
    source: Source
    schemas: Schemas
    log: PipelineLog


@contextmanager
def open_parts(spark: SparkSession, config: PipelineConfig) -> Iterator[PipelineParts]:
    """Open a pipeline; close its source and registry at the end of the block.

    Raises:
        LakeingestError: The lake, the source or the registry cannot be opened; or, within the
            block, the storage fails.
    """
    with ExitStack() as resources:
        resources.enter_context(storage(*storage_of(config)))
        ledger = open_ledger(spark, config, "")
        head = ledger.head()
        config = as_published(config, head)
        sink = open_sink(spark, config)
        source = resources.enter_context(closing(open_source(spark, config.source)))
        schemas = resources.enter_context(closing(open_schemas(spark, config.source)))
        log = pipeline_log(config, source, schemas)
        yield PipelineParts(config, ledger, head, sink, source, schemas, log)
